"""The expressions of elementwise.py: each one formula for all libraries, and twice by hand.

`formula(xp, *operands)` is written in NumPy's names, and `xp` is the library. `by_hand(*operands)` is what a NumPy user
writes for the value and the gradients. `kernel(real)` makes what a Numba user writes: one loop that fills the gradients
and returns the value; `real` makes its constants, since Python's would turn float32 into float64. The functions
stand in classes as in namespaces: no instance is ever made.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

EXPRESSIONS: dict[str, type[Expression]] = {}


class Expression:
    """What all have: the first `active` operands are differentiated by, the others are constants."""

    name = ""
    text = ""
    active = 1
    # What a library must have beyond the functions that all have, and a library that `by_hand` asks for.
    needs: tuple[str, ...] = ()
    by_hand_needs: str | None = None
    operands: Callable[..., Any]
    formula: Callable[..., Any]
    by_hand: Callable[..., Any]
    kernel: Callable[..., Any]

    def __init_subclass__(cls) -> None:
        EXPRESSIONS[cls.name] = cls

    @classmethod
    def values(cls, n: int, dtype: Any, seed: int = 1) -> tuple[np.ndarray, ...]:
        """Random operands of n elements each, or a few more where the expression has a least size."""
        return tuple(np.ascontiguousarray(v, dtype) for v in cls.operands(np.random.default_rng(seed), n))

    @classmethod
    @functools.cache
    def compiled(cls, dtype: Any) -> Callable[..., Any]:
        """The hand-written loop: takes operands, returns the value and the gradients."""
        # All liberties a compiler may take: nothing here is nan or infinite.
        loop = numba.njit(fastmath=True, error_model="numpy")(cls.kernel(np.dtype(dtype).type))
        active = cls.active

        def run(*operands: np.ndarray) -> tuple[float, list[np.ndarray]]:
            gradients = [np.empty_like(v) for v in operands[:active]]
            return loop(*operands, *gradients), gradients

        return run


class Sine(Expression):
    name, text, active = "sine", "sin(x) a + x²", 2

    def operands(random, n):
        return random.uniform(-3, 3, n), random.uniform(0.5, 1.5, n)

    def formula(xp, x, a):
        return xp.sum(xp.sin(x) * a + x * x)

    def by_hand(x, a):
        s = np.sin(x)
        return np.sum(s * a + x * x), (np.cos(x) * a + 2 * x, s)

    def kernel(real):
        two = real(2)

        def loop(x, a, dx, da):
            total = 0.0
            for i in range(x.size):
                s = math.sin(x[i])
                total += s * a[i] + x[i] * x[i]
                dx[i] = math.cos(x[i]) * a[i] + two * x[i]
                da[i] = s
            return total

        return loop


class Residual(Expression):
    """No function at all: as fast as memory is."""

    name, text, active = "residual", "(x y + z)²", 3

    def operands(random, n):
        return random.uniform(-1, 1, n), random.uniform(-1, 1, n), random.uniform(-1, 1, n)

    def formula(xp, x, y, z):
        r = x * y + z
        return xp.sum(r * r)

    def by_hand(x, y, z):
        r = x * y + z
        g = 2 * r
        return np.sum(r * r), (g * y, g * x, g)

    def kernel(real):
        two = real(2)

        def loop(x, y, z, dx, dy, dz):
            total = 0.0
            for i in range(x.size):
                r = x[i] * y[i] + z[i]
                total += r * r
                g = two * r
                dx[i] = g * y[i]
                dy[i] = g * x[i]
                dz[i] = g
            return total

        return loop


COEFFICIENTS = (0.3, -1.2, 0.7, 0.4, -0.5, 0.9, -0.1, 0.6, 0.2, -0.8, 1.1)


class Polynomial(Expression):
    name, text = "polynomial", "degree 10 by Horner's rule: 20 ops"

    def operands(random, n):
        return (random.uniform(0, 1, n),)

    def formula(xp, x):
        p = COEFFICIENTS[0] * x + COEFFICIENTS[1]
        for c in COEFFICIENTS[2:]:
            p = p * x + c
        return xp.sum(p)

    def by_hand(x):
        p, d = np.full_like(x, COEFFICIENTS[0]), np.zeros_like(x)
        for c in COEFFICIENTS[1:]:
            d = d * x + p
            p = p * x + c
        return np.sum(p), (d,)

    def kernel(real):
        a, b, c, d, e, f, g, h, i, j, k = map(real, COEFFICIENTS)
        a2, a3, a4, a5, a6, a7, a8, a9, a10 = (real(n) for n in range(2, 11))

        def loop(xs, dxs):
            total = 0.0
            for at in range(xs.size):
                x = xs[at]
                p = ((((((((a * x + b) * x + c) * x + d) * x + e) * x + f) * x + g) * x + h) * x + i) * x + j
                total += p * x + k
                q = (((a10 * a * x + a9 * b) * x + a8 * c) * x + a7 * d) * x + a6 * e
                dxs[at] = ((((q * x + a5 * f) * x + a4 * g) * x + a3 * h) * x + a2 * i) * x + j
            return total

        return loop


class Gaussian(Expression):
    name, text, active = "gaussian", "((x - m) / s)² / 2 + log(s)", 3

    def operands(random, n):
        return random.normal(0, 2, n), random.normal(0, 1, n), random.uniform(0.5, 2, n)

    def formula(xp, x, m, s):
        z = (x - m) / s
        return xp.sum(0.5 * z * z + xp.log(s))

    def by_hand(x, m, s):
        z = (x - m) / s
        dx = z / s
        return np.sum(0.5 * z * z + np.log(s)), (dx, -dx, (1 - z * z) / s)

    def kernel(real):
        half, one = real(0.5), real(1)

        def loop(x, m, s, dx, dm, ds):
            total = 0.0
            for i in range(x.size):
                r = one / s[i]
                z = (x[i] - m[i]) * r
                total += half * z * z + math.log(s[i])
                dx[i] = z * r
                dm[i] = -z * r
                ds[i] = (one - z * z) * r
            return total

        return loop


class Huber(Expression):
    """A branch."""

    name, text, active = "huber", "d² / 2 if |d| < 1 else |d| - 1/2, d = x - y", 2

    def operands(random, n):
        return random.normal(0, 1, n), random.normal(0, 1, n)

    def formula(xp, x, y):
        d = x - y
        size = xp.abs(d)
        return xp.sum(xp.where(size < 1.0, 0.5 * d * d, size - 0.5))

    def by_hand(x, y):
        d = x - y
        size = np.abs(d)
        g = np.clip(d, -1, 1)
        return np.sum(np.where(size < 1, 0.5 * d * d, size - 0.5)), (g, -g)

    def kernel(real):
        half, one = real(0.5), real(1)

        def loop(x, y, dx, dy):
            total = 0.0
            for i in range(x.size):
                d = x[i] - y[i]
                g = min(max(d, -one), one)
                total += g * (d - half * g)
                dx[i] = g
                dy[i] = -g
            return total

        return loop


GELU = math.sqrt(2 / math.pi)


class Gelu(Expression):
    name, text, active = "gelu", "w x (1 + tanh(c (x + 0.044715 x³))) / 2", 2

    def operands(random, n):
        return random.normal(0, 1, n), random.uniform(0.5, 1.5, n)

    def formula(xp, x, w):
        return xp.sum(w * (0.5 * x * (1.0 + xp.tanh(GELU * (x + 0.044715 * x * x * x)))))

    def by_hand(x, w):
        t = np.tanh(GELU * (x + 0.044715 * x * x * x))
        y = 0.5 * x * (1 + t)
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * GELU * (1 + 3 * 0.044715 * x * x)
        return np.sum(w * y), (w * slope, y)

    def kernel(real):
        half, one, c, d, e = map(real, (0.5, 1, GELU, 0.044715, 3 * 0.044715))

        def loop(xs, ws, dx, dw):
            total = 0.0
            for i in range(xs.size):
                x, w = xs[i], ws[i]
                t = math.tanh(c * (x + d * x * x * x))
                y = half * x * (one + t)
                total += w * y
                dx[i] = w * half * (one + t + x * (one - t * t) * c * (one + e * x * x))
                dw[i] = y
            return total

        return loop


class Wave(Expression):
    name, text, active = "wave", "exp(-x²) cos(y)", 2

    def operands(random, n):
        return random.normal(0, 1, n), random.uniform(-1, 1, n)

    def formula(xp, x, y):
        return xp.sum(xp.exp(-(x * x)) * xp.cos(y))

    def by_hand(x, y):
        e, c = np.exp(-(x * x)), np.cos(y)
        out = e * c
        return np.sum(out), (-2 * x * out, -e * np.sin(y))

    def kernel(real):
        two = real(2)

        def loop(x, y, dx, dy):
            total = 0.0
            for i in range(x.size):
                e = math.exp(-x[i] * x[i])
                out = e * math.cos(y[i])
                total += out
                dx[i] = -two * x[i] * out
                dy[i] = -e * math.sin(y[i])
            return total

        return loop


RATE = 0.03


class BlackScholes(Expression):
    name, text, active = "black_scholes", "price of a call by spot, strike, time and volatility", 4
    needs, by_hand_needs = ("erf",), "scipy.special"

    def operands(random, n):
        spot, strike = random.uniform(80, 120, n), random.uniform(80, 120, n)
        return spot, strike, random.uniform(0.2, 2, n), random.uniform(0.1, 0.5, n)

    def formula(xp, spot, strike, time, volatility):
        spread = volatility * xp.sqrt(time)
        d1 = (xp.log(spot / strike) + (RATE + 0.5 * volatility * volatility) * time) / spread
        d2 = d1 - spread
        n1 = 0.5 * (1.0 + xp.erf(d1 * math.sqrt(0.5)))
        n2 = 0.5 * (1.0 + xp.erf(d2 * math.sqrt(0.5)))
        return xp.sum(spot * n1 - strike * xp.exp(-RATE * time) * n2)

    def by_hand(spot, strike, time, volatility):
        from scipy.special import erf  # NumPy has none

        root = np.sqrt(time)
        spread = volatility * root
        d1 = (np.log(spot / strike) + (RATE + 0.5 * volatility * volatility) * time) / spread
        n1 = 0.5 * (1 + erf(d1 * math.sqrt(0.5)))
        n2 = 0.5 * (1 + erf((d1 - spread) * math.sqrt(0.5)))
        discounted = np.exp(-RATE * time)
        vega = spot * np.exp(-0.5 * d1 * d1) * (root / math.sqrt(2 * math.pi))
        by_strike = -discounted * n2
        value = spot * n1 + strike * by_strike
        return np.sum(value), (n1, by_strike, 0.5 * vega * volatility / time - RATE * strike * by_strike, vega)

    def kernel(real):
        half, one, rate, scale, density = map(real, (0.5, 1, RATE, math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)))

        def loop(spots, strikes, times, volatilities, by_spot, by_strike, by_time, by_volatility):
            total = 0.0
            for i in range(spots.size):
                spot, strike, time, volatility = spots[i], strikes[i], times[i], volatilities[i]
                root = math.sqrt(time)
                spread = volatility * root
                d1 = (math.log(spot / strike) + (rate + half * volatility * volatility) * time) / spread
                n1 = half * (one + math.erf(d1 * scale))
                n2 = half * (one + math.erf((d1 - spread) * scale))
                kept = strike * math.exp(-rate * time) * n2
                vega = spot * math.exp(-half * d1 * d1) * root * density
                total += spot * n1 - kept
                by_spot[i] = n1
                by_strike[i] = -kept / strike
                by_time[i] = half * vega * volatility / time + rate * kept
                by_volatility[i] = vega
            return total

        return loop


class Logistic(Expression):
    name, text, active = "logistic", "log(1 + exp(-y x w)), y = ±1", 2

    def operands(random, n):
        return random.normal(0, 2, n), random.normal(0, 1, n), random.choice([-1.0, 1.0], n)

    def formula(xp, x, w, y):
        m = y * (x * w)
        return xp.sum(xp.where(m > 0.0, 0.0, -m) + xp.log1p(xp.exp(-xp.abs(m))))

    def by_hand(x, w, y):
        m = y * (x * w)
        e = np.exp(-np.abs(m))
        g = -y * np.where(m > 0, e, 1) / (1 + e)
        return np.sum(np.where(m > 0, 0, -m) + np.log1p(e)), (g * w, g * x)

    def kernel(real):
        zero, one = real(0), real(1)

        def loop(x, w, y, dx, dw):
            total = 0.0
            for i in range(x.size):
                m = y[i] * x[i] * w[i]
                e = math.exp(-abs(m))
                total += max(-m, zero) + math.log1p(e)
                g = -y[i] * (e if m > zero else one) / (one + e)
                dx[i] = g * w[i]
                dw[i] = g * x[i]
            return total

        return loop


class LennardJones(Expression):
    name, text, active = "lennard_jones", "4 (r⁻¹² - r⁻⁶), r² = x² + y² + z²", 3

    def operands(random, n):
        return random.uniform(0.4, 0.9, n), random.uniform(0.4, 0.9, n), random.uniform(0.4, 0.9, n)

    def formula(xp, x, y, z):
        inverse = 1.0 / (x * x + y * y + z * z)
        s = inverse * inverse * inverse
        return xp.sum(4.0 * (s * s - s))

    def by_hand(x, y, z):
        inverse = 1 / (x * x + y * y + z * z)
        s = inverse * inverse * inverse
        g = -24 * (2 * s * s - s) * inverse
        return np.sum(4 * (s * s - s)), (g * x, g * y, g * z)

    def kernel(real):
        one, two, four, many = map(real, (1, 2, 4, -24))

        def loop(x, y, z, dx, dy, dz):
            total = 0.0
            for i in range(x.size):
                inverse = one / (x[i] * x[i] + y[i] * y[i] + z[i] * z[i])
                s = inverse * inverse * inverse
                total += four * (s * s - s)
                g = many * (two * s * s - s) * inverse
                dx[i] = g * x[i]
                dy[i] = g * y[i]
                dz[i] = g * z[i]
            return total

        return loop


class Haversine(Expression):
    name, text, active = "haversine", "the distance of two points on a sphere", 4

    def operands(random, n):
        # Neither near each other nor near antipodes, where it is not smooth.
        return (
            random.uniform(0.1, 0.7, n),
            random.uniform(0, 1, n),
            random.uniform(-0.7, -0.1, n),
            random.uniform(-1, 0, n),
        )

    def formula(xp, lat1, lon1, lat2, lon2):
        s, t = xp.sin(0.5 * (lat2 - lat1)), xp.sin(0.5 * (lon2 - lon1))
        h = s * s + xp.cos(lat1) * xp.cos(lat2) * t * t
        return xp.sum(2.0 * xp.arcsin(xp.sqrt(h)))

    def by_hand(lat1, lon1, lat2, lon2):
        lat, lon = 0.5 * (lat2 - lat1), 0.5 * (lon2 - lon1)
        s, t = np.sin(lat), np.sin(lon)
        c1, c2 = np.cos(lat1), np.cos(lat2)
        h = s * s + c1 * c2 * t * t
        g = 1 / np.sqrt(h * (1 - h))
        along = g * s * np.cos(lat)
        across = g * c1 * c2 * t * np.cos(lon)
        by_lat1 = -along - g * np.sin(lat1) * c2 * t * t
        by_lat2 = along - g * c1 * np.sin(lat2) * t * t
        return np.sum(2 * np.arcsin(np.sqrt(h))), (by_lat1, -across, by_lat2, across)

    def kernel(real):
        half, one, two = map(real, (0.5, 1, 2))

        def loop(lat1, lon1, lat2, lon2, by_lat1, by_lon1, by_lat2, by_lon2):
            total = 0.0
            for i in range(lat1.size):
                lat, lon = half * (lat2[i] - lat1[i]), half * (lon2[i] - lon1[i])
                s, t = math.sin(lat), math.sin(lon)
                c1, c2 = math.cos(lat1[i]), math.cos(lat2[i])
                h = s * s + c1 * c2 * t * t
                total += two * math.asin(math.sqrt(h))
                g = one / math.sqrt(h * (one - h))
                along = g * s * math.cos(lat)
                across = g * c1 * c2 * t * math.cos(lon)
                by_lat1[i] = -along - g * math.sin(lat1[i]) * c2 * t * t
                by_lon1[i] = -across
                by_lat2[i] = along - g * c1 * math.sin(lat2[i]) * t * t
                by_lon2[i] = across
            return total

        return loop


class CrossEntropy(Expression):
    """Rows of ten classes, the targets one-hot."""

    name, text = "cross_entropy", "logsumexp of each row - its target"

    def operands(random, n):
        rows = max(n // 10, 1)
        return random.normal(0, 2, (rows, 10)), np.eye(10)[random.integers(0, 10, rows)]

    def formula(xp, z, target):
        m = xp.max(z, axis=1, keepdims=True)
        return xp.sum(xp.log(xp.sum(xp.exp(z - m), axis=1))) + xp.sum(m) - xp.sum(target * z)

    def by_hand(z, target):
        m = np.max(z, axis=1, keepdims=True)
        e = np.exp(z - m)
        total = np.sum(e, axis=1, keepdims=True)
        return np.sum(np.log(total)) + np.sum(m) - np.sum(target * z), (e / total - target,)

    def kernel(real):
        zero, one = real(0), real(1)

        def loop(z, target, dz):
            total = 0.0
            for i in range(z.shape[0]):
                m = z[i, 0]
                for j in range(1, z.shape[1]):
                    m = max(m, z[i, j])
                size = zero
                for j in range(z.shape[1]):
                    e = math.exp(z[i, j] - m)
                    dz[i, j] = e
                    size += e
                    total -= target[i, j] * z[i, j]
                total += math.log(size) + m
                size = one / size
                for j in range(z.shape[1]):
                    dz[i, j] = dz[i, j] * size - target[i, j]
            return total

        return loop


class Rosenbrock(Expression):
    """Neighbours: views of one array."""

    name, text = "rosenbrock", "100 (x[1:] - x[:-1]²)² + (1 - x[:-1])²"

    def operands(random, n):
        return (random.uniform(-1, 1, max(n, 2)),)

    def formula(xp, x):
        left, right = x[:-1], x[1:]
        r, s = right - left * left, 1.0 - left
        return xp.sum(100.0 * r * r + s * s)

    def by_hand(x):
        left, right = x[:-1], x[1:]
        r, s = right - left * left, 1 - left
        g = np.empty_like(x)
        g[:-1] = -400 * left * r - 2 * s
        g[-1] = 0
        g[1:] += 200 * r
        return np.sum(100 * r * r + s * s), (g,)

    def kernel(real):
        zero, one, two, factor, twice, four = map(real, (0, 1, 2, 100, 200, 400))

        def loop(x, dx):
            total, before = 0.0, zero
            for i in range(x.size - 1):
                r, s = x[i + 1] - x[i] * x[i], one - x[i]
                total += factor * r * r + s * s
                dx[i] = before - four * x[i] * r - two * s
                before = twice * r
            dx[x.size - 1] = before
            return total

        return loop
