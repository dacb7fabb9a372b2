"""Scalar mathematics that the compiler inlines into loops and turns into packed instructions."""
