"""exp, log, log10 and pow as in Sun's fdlibm, bit for bit: what Java's StrictMath specifies.

The algorithms and constants are those of fdlibm 5.3 (e_exp.c, e_log.c, e_log10.c, e_pow.c): "Copyright (C) 1993 by Sun
Microsystems, Inc. All rights reserved. Developed at SunSoft, a Sun Microsystems, Inc. business. Permission to use,
copy, modify, and distribute this software is freely granted, provided that this notice is preserved." One double at a
time: C's own functions differ in the last bit for about one in a thousand arguments.
"""

from __future__ import annotations

import math
import struct

_TWO54 = 1.80143985094819840000e16
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def _words(value: float) -> tuple[int, int]:
    """(high as a signed number, low) 32 bits."""
    high, low = struct.unpack(">iI", struct.pack(">d", value))
    return high, low


def _with_high(value: float, high: int) -> float:
    result: float = struct.unpack(">d", struct.pack(">iI", _signed(high), _words(value)[1]))[0]
    return result


def _with_low(value: float, low: int) -> float:
    result: float = struct.unpack(">d", struct.pack(">iI", _words(value)[0], low))[0]
    return result


def _signed(word: int) -> int:
    return (word + (1 << 31)) % (1 << 32) - (1 << 31)


_LG = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip


def log(x: float) -> float:
    """The natural logarithm."""
    high, low = _words(x)
    k = 0
    if high < 0x00100000:
        if ((high & 0x7FFFFFFF) | low) == 0:
            return -math.inf
        if high < 0:
            return math.nan
        k -= 54
        x *= _TWO54
        high = _words(x)[0]
    if high >= 0x7FF00000:
        return x + x
    k += (high >> 20) - 1023
    high &= 0x000FFFFF
    i = (high + 0x95F64) & 0x100000
    x = _with_high(x, high | (i ^ 0x3FF00000))
    k += i >> 20
    f = x - 1.0
    if (0x000FFFFF & (2 + high)) < 3:  # |f| < 2**-20
        if f == 0.0:
            return 0.0 if k == 0 else k * _LN2_HIGH + k * _LN2_LOW
        r = f * f * (0.5 - 0.33333333333333333 * f)
        return f - r if k == 0 else k * _LN2_HIGH - ((r - k * _LN2_LOW) - f)
    s = f / (2.0 + f)
    z = s * s
    i = high - 0x6147A
    w = z * z
    j = 0x6B851 - high
    t1 = w * (_LG[1] + w * (_LG[3] + w * _LG[5]))
    t2 = z * (_LG[0] + w * (_LG[2] + w * (_LG[4] + w * _LG[6])))
    r = t2 + t1
    if (i | j) > 0:
        half = 0.5 * f * f
        if k == 0:
            return f - (half - s * (half + r))
        return k * _LN2_HIGH - ((half - (s * (half + r) + k * _LN2_LOW)) - f)
    return f - s * (f - r) if k == 0 else k * _LN2_HIGH - ((s * (f - r) - k * _LN2_LOW) - f)


def log10(x: float) -> float:
    """The decimal logarithm."""
    high, low = _words(x)
    k = 0
    if high < 0x00100000:
        if ((high & 0x7FFFFFFF) | low) == 0:
            return -math.inf
        if high < 0:
            return math.nan
        k -= 54
        x *= _TWO54
        high = _words(x)[0]
    if high >= 0x7FF00000:
        return x + x
    k += (high >> 20) - 1023
    i = 1 if k < 0 else 0
    x = _with_high(x, (high & 0x000FFFFF) | ((0x3FF - i) << 20))
    y = float(k + i)
    z = y * 3.69423907715893078616e-13 + 4.34294481903251816668e-01 * log(x)
    return z + y * 3.01029995663611771306e-01


_EXP = (
    1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05,
    -1.65339022054652515390e-06, 4.13813679705723846039e-08,
)  # fmt: skip


def exp(x: float) -> float:
    """e to the power of x."""
    high, low = _words(x)
    negative = high < 0
    high &= 0x7FFFFFFF
    if high >= 0x40862E42:
        if high >= 0x7FF00000:
            return x if (high & 0xFFFFF) | low or not negative else 0.0
        if x > 7.09782712893383973096e02:
            return math.inf
        if x < -7.45133219101941108420e02:
            return 0.0
    k, above, below = 0, 0.0, 0.0
    if high > 0x3FD62E42:
        if high < 0x3FF0A2B2:
            above = x + _LN2_HIGH if negative else x - _LN2_HIGH
            below = -_LN2_LOW if negative else _LN2_LOW
            k = -1 if negative else 1
        else:
            k = int(1.44269504088896338700e00 * x + (-0.5 if negative else 0.5))
            above, below = x - k * _LN2_HIGH, k * _LN2_LOW
        x = above - below
    elif high < 0x3E300000:
        return 1.0 + x
    t = x * x
    c = x - t * (_EXP[0] + t * (_EXP[1] + t * (_EXP[2] + t * (_EXP[3] + t * _EXP[4]))))
    if k == 0:
        return 1.0 - ((x * c) / (c - 2.0) - x)
    y = 1.0 - ((below - (x * c) / (2.0 - c)) - above)
    if k >= -1021:
        return y * 2.0 * 2.0**1023 if k == 1024 else _with_high(y, _words(y)[0] + (k << 20))
    return _with_high(y, _words(y)[0] + ((k + 1000) << 20)) * 2.0**-1000


_L = (
    5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01, 2.72728123808534006489e-01,
    2.30660745775561754067e-01, 2.06975017800338417784e-01,
)  # fmt: skip
_BP, _DP_HIGH, _DP_LOW = (1.0, 1.5), (0.0, 5.84962487220764160156e-01), (0.0, 1.35003920212974897128e-08)
_CP, _CP_HIGH, _CP_LOW = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09
_LN2, _LG2_HIGH, _LG2_LOW = 6.93147180559945286227e-01, 6.93147182464599609375e-01, -1.90465429995776804525e-09
_IVLN2, _IVLN2_HIGH, _IVLN2_LOW = 1.44269504088896338700e00, 1.44269502162933349609e00, 1.92596299112661746887e-08
_HUGE, _TINY = 1e300, 1e-300


def power(x: float, y: float) -> float:
    """x to the power of y; NaN for 1 and -1 to the power of an infinity, as in Java."""
    special = _special_power(x, y)
    if special is not None:
        return special
    hx, hy, ix, iy = _words(x)[0], _words(y)[0], _words(x)[0] & 0x7FFFFFFF, _words(y)[0] & 0x7FFFFFFF
    sign = -1.0 if hx < 0 and _parity(y) == 1 else 1.0
    ax = abs(x)
    if iy > 0x41E00000:  # |y| > 2**31
        if iy > 0x43F00000:
            if ix <= 0x3FEFFFFF:
                return _HUGE * _HUGE if hy < 0 else _TINY * _TINY
            if ix >= 0x3FF00000:
                return _HUGE * _HUGE if hy > 0 else _TINY * _TINY
        if ix < 0x3FEFFFFF:
            return sign * _HUGE * _HUGE if hy < 0 else sign * _TINY * _TINY
        if ix > 0x3FF00000:
            return sign * _HUGE * _HUGE if hy > 0 else sign * _TINY * _TINY
        t = ax - 1.0
        w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
        u, v = _IVLN2_HIGH * t, t * _IVLN2_LOW - w * _IVLN2
        t1 = _with_low(u + v, 0)
        t2 = v - (t1 - u)
    else:
        t1, t2 = _binary_log(ax, ix)
    y1 = _with_low(y, 0)
    low, high = (y - y1) * t1 + y * t2, y1 * t1
    return _binary_power(low, high, sign)


def _special_power(x: float, y: float) -> float | None:
    """The result for zeros, ones, infinities and what is no number; None for all others."""
    if y == 0.0:
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if math.isinf(y):
        if abs(x) == 1.0:
            return math.nan
        return (y if y > 0 else 0.0) if abs(x) > 1.0 else (-y if y < 0 else 0.0)
    if abs(y) == 1.0:
        return x if y > 0 else (1.0 / x if x else math.copysign(math.inf, x))
    if y == 2.0:
        return x * x
    if y == 0.5 and _words(x)[0] >= 0:
        return math.sqrt(x)
    if x == 0.0 or math.isinf(x) or abs(x) == 1.0:
        size = abs(x)
        z = size if y > 0 else (0.0 if size == math.inf else math.inf if size == 0.0 else 1.0)
        if _words(x)[0] < 0:
            if size == 1.0 and _parity(y) == 0:
                return math.nan
            return -z if _parity(y) == 1 else z
        return z
    return math.nan if x < 0 and _parity(y) == 0 else None


def _parity(y: float) -> int:
    """0 for no whole number, 1 for an odd one, 2 for an even one."""
    if not y.is_integer():
        return 0
    return 1 if int(y) % 2 else 2


def _binary_log(ax: float, ix: int) -> tuple[float, float]:
    """log2(ax) in two parts."""
    n = 0
    if ix < 0x00100000:
        ax *= 9007199254740992.0
        n -= 53
        ix = _words(ax)[0]
    n += (ix >> 20) - 0x3FF
    j = ix & 0x000FFFFF
    ix = j | 0x3FF00000
    k = 0
    if j > 0x3988E:
        if j < 0xBB67A:
            k = 1
        else:
            n += 1
            ix -= 0x00100000
    ax = _with_high(ax, ix)
    u, v = ax - _BP[k], 1.0 / (ax + _BP[k])
    ss = u * v
    s_high = _with_low(ss, 0)
    t_high = _with_high(0.0, ((ix >> 1) | 0x20000000) + 0x00080000 + (k << 18))
    t_low = ax - (t_high - _BP[k])
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    s2 = ss * ss
    r = s2 * s2 * (_L[0] + s2 * (_L[1] + s2 * (_L[2] + s2 * (_L[3] + s2 * (_L[4] + s2 * _L[5])))))
    r += s_low * (s_high + ss)
    s2 = s_high * s_high
    t_high = _with_low(3.0 + s2 + r, 0)
    t_low = r - ((t_high - 3.0) - s2)
    u, v = s_high * t_high, s_low * t_high + t_low * ss
    p_high = _with_low(u + v, 0)
    p_low = v - (p_high - u)
    z_high, z_low = _CP_HIGH * p_high, _CP_LOW * p_high + p_low * _CP + _DP_LOW[k]
    t = float(n)
    t1 = _with_low(((z_high + z_low) + _DP_HIGH[k]) + t, 0)
    return t1, z_low - (((t1 - t) - _DP_HIGH[k]) - z_high)


def _binary_power(low: float, high: float, sign: float) -> float:
    """sign * 2**(high + low)."""
    z = low + high
    j, i = _words(z)
    if j >= 0x40900000:  # z >= 1024
        if ((j - 0x40900000) | i) != 0 or low + 8.0085662595372944372e-0017 > z - high:
            return sign * _HUGE * _HUGE
    elif (j & 0x7FFFFFFF) >= 0x4090CC00 and ((_signed(j - 0xC090CC00) | i) != 0 or low <= z - high):  # z <= -1075
        return sign * _TINY * _TINY
    i = j & 0x7FFFFFFF
    k, n = (i >> 20) - 0x3FF, 0
    if i > 0x3FE00000:  # |z| > 0.5
        n = j + (0x00100000 >> (k + 1))
        k = ((n & 0x7FFFFFFF) >> 20) - 0x3FF
        t = _with_high(0.0, n & ~(0x000FFFFF >> k))
        n = ((n & 0x000FFFFF) | 0x00100000) >> (20 - k)
        n = -n if j < 0 else n
        high -= t
    t = _with_low(low + high, 0)
    u, v = t * _LG2_HIGH, (low - (t - high)) * _LN2 + t * _LG2_LOW
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * (_EXP[0] + t * (_EXP[1] + t * (_EXP[2] + t * (_EXP[3] + t * _EXP[4]))))
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    z = 1.0 - (r - z)
    j = _words(z)[0] + (n << 20)
    if (j >> 20) <= 0:
        return sign * math.ldexp(z, n)
    return sign * _with_high(z, j)
