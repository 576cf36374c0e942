#!/usr/bin/env python3
"""Minimax coefficients of src/samebits/arith (needs mpmath; not part of the build).

Every polynomial there has the form F(x) = base(x) + scale(x) * Q(y(x)). This script finds the Q of
given length that minimises the largest |relative error of F|, by Remez exchange with weight
|scale / F|, and rounds each coefficient to its format; the error after rounding is printed too.

Usage: fit_polynomials.py            prints every table of the headers as hex floats
"""
import struct

from mpmath import cos, exp, log, matrix, lu_solve, mp, mpf, pi, sin, sqrt, tanh

mp.dps = 50


def round_to(x, bits):
    """x rounded to a binary significand of `bits` bits (24: fp32, 53: double)."""
    if x == 0:
        return x
    e = mp.floor(mp.log(abs(x), 2))
    unit = mpf(2) ** (int(e) - bits + 1)
    return mp.nint(x / unit) * unit


def exchange(target, weight, lo, hi, count, grid=1500):
    """The best `count` coefficients and the largest weighted error."""
    ys = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (i + mpf(1) / 3) / grid) for i in range(grid)]
    goal = [target(y) for y in ys]
    weights = [weight(y) for y in ys]
    points = [int((i + 0.5) * grid / (count + 1)) for i in range(count + 1)]
    for _ in range(60):
        a = matrix(count + 1, count + 1)
        b = matrix(count + 1, 1)
        for row, p in enumerate(points):
            for i in range(count):
                a[row, i] = ys[p] ** i
            a[row, count] = (-1) ** row / weights[p]
            b[row] = goal[p]
        solution = lu_solve(a, b)
        coefficients = [solution[i] for i in range(count)]
        errors = [(g - sum(c * y**i for i, c in enumerate(coefficients))) * w
                  for y, g, w in zip(ys, goal, weights)]
        extrema, start = [], 0
        for i in range(1, grid + 1):
            if i == grid or (errors[i] > 0) != (errors[start] > 0):
                extrema.append(max(range(start, i), key=lambda j: abs(errors[j])))
                start = i
        while len(extrema) > count + 1:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if len(extrema) < count + 1 or extrema == points:
            break
        points = extrema
    return coefficients, max(abs(e) for e in errors)


def fit(name, target, weight, lo, hi, count, bits):
    coefficients, ideal = exchange(target, weight, lo, hi, count)
    rounded = [round_to(c, bits) for c in coefficients]
    worst = max(
        abs((target(y) - sum(c * y**i for i, c in enumerate(rounded))) * weight(y))
        for y in (lo + (hi - lo) * mpf(i) / 4000 + mpf(10) ** -20 for i in range(4001)))
    print(f"{name}: relative error 2^{float(mp.log(worst, 2)):.2f}, "
          f"before rounding 2^{float(mp.log(ideal, 2)):.2f}")
    for c in rounded:
        print(f"  {float(c).hex()}{'f' if bits == 24 else ''}")


def split(name, value, bits_each):
    print(name)
    for bits in bits_each:
        part = round_to(value, bits)
        value -= part
        print(f"  {float(part).hex()}")


def series(function, order, sign=1):
    """(function(x) - its leading terms) / x^order near 0 is 0/0 numerically: shift away from it."""
    return lambda x: function(x if abs(x) > mpf(10) ** -15 else mpf(10) ** -15)


def main():
    ln2 = log(mpf(2))
    a = ln2 / 2 * mpf("1.0001")
    fit("exp: 1 + r + r^2 Q(r)", series(lambda r: (exp(r) - 1 - r) / r**2, 2),
        lambda r: r**2 / exp(r) + mpf(10) ** -30, -a, a, 5, 24)
    fit("exp2: 1 + f Q(f)", series(lambda f: (2**f - 1) / f, 1),
        lambda f: abs(f) / 2**f + mpf(10) ** -30, -mpf(1) / 2, mpf(1) / 2, 4, 24)
    for edge, count in ((mpf("0.625"), 5), (mpf(1), 7), (mpf("1.25"), 9)):
        fit(f"tanh below {float(edge)}: x + x^3 Q(x^2)",
            series(lambda y: (tanh(sqrt(y)) - sqrt(y)) / sqrt(y) ** 3, 3),
            lambda y: sqrt(y) ** 3 / tanh(sqrt(y)) if y > mpf(10) ** -30 else mpf(10) ** -30,
            mpf(10) ** -12, edge**2, count, 24)
    top = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.0001")
    fit("log: 2s + s^3 Q(s^2)",
        series(lambda y: (log((1 + sqrt(y)) / (1 - sqrt(y))) - 2 * sqrt(y)) / sqrt(y) ** 3, 3),
        lambda y: sqrt(y) ** 3 / log((1 + sqrt(y)) / (1 - sqrt(y))), mpf(10) ** -12, top, 8, 53)
    quarter = (pi / 4 * mpf("1.0001")) ** 2
    fit("sin: r + r^3 Q(r^2)", series(lambda y: (sin(sqrt(y)) - sqrt(y)) / sqrt(y) ** 3, 3),
        lambda y: sqrt(y) ** 3 / sin(sqrt(y)), mpf(10) ** -12, quarter, 6, 53)
    fit("cos: 1 - r^2/2 + r^4 Q(r^2)", series(lambda y: (cos(sqrt(y)) - 1 + y / 2) / y**2, 4),
        lambda y: y**2 / cos(sqrt(y)), mpf(10) ** -12, quarter, 6, 53)
    split("ln 2 in fp32: 15 bits, 24 bits", ln2, (15, 24))
    split("ln 2 in double", ln2, (53,))
    split("pi/2: 33, 33, 53 bits", pi / 2, (33, 33, 53))
    for name, value in (("log2 e", 1 / ln2), ("1/30", mpf(1) / 30)):
        print(name, float(round_to(value, 24)).hex(),
              struct.pack(">f", float(value)).hex())
    print("2/pi", float(2 / pi).hex())


if __name__ == "__main__":
    main()
