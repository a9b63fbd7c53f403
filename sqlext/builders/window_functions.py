"""The window functions. Written by `python docs/functions.py`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlext.builders.expressions import Expr, Value, call, expression
from sqlext.builders.text import literal_text

__all__ = [
    "any_value",
    "approx_count_distinct",
    "approx_percentile",
    "array_agg",
    "at",
    "avg",
    "avg_cate",
    "avg_cate_where",
    "avg_where",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "collect_list",
    "collect_set",
    "corr",
    "count",
    "count_cate",
    "count_cate_where",
    "count_if",
    "count_where",
    "covar_pop",
    "covar_samp",
    "distinct_count",
    "drawdown",
    "entropy",
    "every",
    "ew_avg",
    "first",
    "first_value",
    "fz_top1_ratio",
    "fz_topn_frequency",
    "fz_window_split",
    "fz_window_split_by_key",
    "fz_window_split_by_value",
    "kurtosis",
    "lag",
    "last",
    "last_value",
    "lead",
    "listagg",
    "max",
    "max_by",
    "max_cate",
    "max_cate_where",
    "max_where",
    "mean",
    "median",
    "min",
    "min_by",
    "min_cate",
    "min_cate_where",
    "min_where",
    "mode",
    "nth_value",
    "nth_value_where",
    "percentile",
    "percentile_approx",
    "product",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "skewness",
    "some",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "sum_cate",
    "sum_cate_where",
    "sum_where",
    "top",
    "top1_ratio",
    "top_n_key_avg_cate_where",
    "top_n_key_count_cate_where",
    "top_n_key_max_cate_where",
    "top_n_key_min_cate_where",
    "top_n_key_ratio_cate",
    "top_n_key_sum_cate_where",
    "top_n_value_avg_cate_where",
    "top_n_value_count_cate_where",
    "top_n_value_max_cate_where",
    "top_n_value_min_cate_where",
    "top_n_value_ratio_cate",
    "top_n_value_sum_cate_where",
    "topn_frequency",
    "try_avg",
    "try_sum",
    "var_pop",
    "var_samp",
    "variance",
    "window_split",
    "window_split_by_key",
    "window_split_by_value",
]


def count(x: Value = "*") -> Expr:
    """Number of non-NULL values, or of rows for count(*); 0 for an empty window.

    count(x or *)
    """
    return call("count", expression(x))


def sum(x: Value) -> Expr:
    """Sum of the values. The type is that of Spark's sum: integers give a bigint, float and double a double. A
    bigint that overflows is an error under ANSI, and wraps around without it; a decimal that overflows is NULL
    there. NULL if no value is left. With compat="openmldb" integers, floats and timestamps keep their type.

    sum(x)
    """
    return call("sum", expression(x))


def avg(x: Value) -> Expr:
    """Mean of the values. The result is a double: integers are summed exactly, and the mean of floats is computed in
    double. For decimals it is decimal(p+4, s+4), for day-time intervals an interval, both rounded half up. NULL
    if no value is left.

    avg(x)
    """
    return call("avg", expression(x))


def min(x: Value) -> Expr:
    """Smallest value. NULL if no value is left. As in Spark, NaN is the largest number, -0.0 equals 0.0, false is
    less than true, and strings compare by their UTF-8 bytes.

    min(x)
    """
    return call("min", expression(x))


def max(x: Value) -> Expr:
    """Largest value. NULL if no value is left. As in Spark, NaN is the largest number, -0.0 equals 0.0, false is
    less than true, and strings compare by their UTF-8 bytes.

    max(x)
    """
    return call("max", expression(x))


def distinct_count(x: Value) -> Expr:
    """Number of distinct values; 0 for an empty window. As in OpenMLDB, a NULL counts as the zero value of its type:
    0, false, '', the epoch for a timestamp, midnight for a time. A NULL date counts as a value of its own
    (OpenMLDB's zero date is not a day in the calendar). All NaNs count as one value, and so do -0.0 and 0.0.

    distinct_count(x)
    """
    return call("distinct_count", expression(x))


def first_value(x: Value, ignore_null: bool = False) -> Expr:
    """Value of the oldest row of the window; with ignore_null or IGNORE NULLS, of the oldest row whose value is not
    NULL. NULL if there is no such row.

    first_value(x[, ignore_null])
    """
    return call("first_value", expression(x), literal_text(ignore_null))


def last_value(x: Value, ignore_null: bool = False) -> Expr:
    """Value of the newest row of the window; with ignore_null or IGNORE NULLS, of the newest row whose value is not
    NULL. NULL if there is no such row.

    last_value(x[, ignore_null])
    """
    return call("last_value", expression(x), literal_text(ignore_null))


def lag(x: Value, n: int = 1, default: Value | None = None) -> Expr:
    """Value of the row n places before the current row. It counts rows of the partition, not of the frame (but
    EXCLUDE CURRENT_TIME and INSTANCE_NOT_IN_WINDOW still leave rows out), with IGNORE NULLS only those whose
    value is not NULL. n = 0 is the current row. If there is no such row, it is the default, computed on the
    current row, or NULL.

    lag(x[, n][, default])
    """
    return call("lag", expression(x), literal_text(n), *([] if default is None else [expression(default)]))


def lead(x: Value, n: int = 1, default: Value | None = None) -> Expr:
    """Value of the row n places after the current row. It counts rows of the partition, not of the frame (but
    EXCLUDE CURRENT_TIME and INSTANCE_NOT_IN_WINDOW still leave rows out), with IGNORE NULLS only those whose
    value is not NULL. n = 0 is the current row. If there is no such row, it is the default, computed on the
    current row, or NULL. Not on streams, and not in OpenMLDB.

    lead(x[, n][, default])
    """
    return call("lead", expression(x), literal_text(n), *([] if default is None else [expression(default)]))


def count_where(x: Value, condition: Value) -> Expr:
    """Number of non-NULL values, or of rows for *, where the condition is true. A NULL condition counts as false.

    count_where(x or *, condition)
    """
    return call("count_where", expression(x), expression(condition))


def sum_where(x: Value, condition: Value) -> Expr:
    """Sum of the values where the condition is true (NULL counts as false). OpenMLDB skips x = 0 by mistake, so a
    sum of zeros is NULL there; here it is 0. The type is that of Spark's sum: integers give a bigint, float and
    double a double. A bigint that overflows is an error under ANSI, and wraps around without it; a decimal that
    overflows is NULL there. NULL if no value is left. With compat="openmldb" integers, floats and timestamps keep
    their type.

    sum_where(x, condition)
    """
    return call("sum_where", expression(x), expression(condition))


def avg_where(x: Value, condition: Value) -> Expr:
    """Mean of the values where the condition is true (NULL counts as false). OpenMLDB skips x = 0 by mistake; here
    zeros count. The result is a double: integers are summed exactly, and the mean of floats is computed in
    double. For decimals it is decimal(p+4, s+4), for day-time intervals an interval, both rounded half up. NULL
    if no value is left.

    avg_where(x, condition)
    """
    return call("avg_where", expression(x), expression(condition))


def min_where(x: Value, condition: Value) -> Expr:
    """Smallest value where the condition is true (NULL counts as false). NULL if no value is left. As in Spark, NaN
    is the largest number, -0.0 equals 0.0, false is less than true, and strings compare by their UTF-8 bytes.

    min_where(x, condition)
    """
    return call("min_where", expression(x), expression(condition))


def max_where(x: Value, condition: Value) -> Expr:
    """Largest value where the condition is true (NULL counts as false). NULL if no value is left. As in Spark, NaN
    is the largest number, -0.0 equals 0.0, false is less than true, and strings compare by their UTF-8 bytes.

    max_where(x, condition)
    """
    return call("max_where", expression(x), expression(condition))


def nth_value(x: Value, n: int, ignore_null: bool = False) -> Expr:
    """Value of the n-th oldest row of the window, 1 for the oldest; with ignore_null, of the n-th one whose value is
    not NULL. NULL if there are fewer rows.

    nth_value(x, n[, ignore_null])
    """
    return call("nth_value", expression(x), literal_text(n), literal_text(ignore_null))


def max_by(x: Value, y: Value) -> Expr:
    """The x of the row with the largest y that is not NULL; of several such rows, the newest one's. NULL if no row
    has a y.

    max_by(x, y)
    """
    return call("max_by", expression(x), expression(y))


def min_by(x: Value, y: Value) -> Expr:
    """The x of the row with the smallest y that is not NULL; of several such rows, the newest one's. NULL if no row
    has a y.

    min_by(x, y)
    """
    return call("min_by", expression(x), expression(y))


def mode(x: Value, deterministic: bool = True) -> Expr:
    """The most frequent value; of equally frequent ones the smallest (Spark promises that only with deterministic;
    here it always is). Also mode() WITHIN GROUP (ORDER BY x [DESC]), with DESC the largest of them. NULL if no
    value is left.

    mode(x[, deterministic])
    """
    return call("mode", expression(x), literal_text(deterministic))


def approx_count_distinct(x: Value, rsd: float = 0.05) -> Expr:
    """Number of distinct values, 0 for an empty window. Spark estimates it (HyperLogLog++, rsd is its error); this
    one is exact, so it is never further off, and rsd has no effect. All NaNs count as one value, and so do -0.0
    and 0.0.

    approx_count_distinct(x[, rsd])
    """
    return call("approx_count_distinct", expression(x), literal_text(rsd))


def collect_list(x: Value) -> Expr:
    """All values as an array, the oldest first; an empty one for an empty window. Costs time and memory in the
    frame's size.

    collect_list(x)
    """
    return call("collect_list", expression(x))


def collect_set(x: Value) -> Expr:
    """The distinct values as an array, in the order in which they come first (Spark promises none). All NaNs are one
    value, and so are -0.0 and 0.0. Costs time and memory in the frame's size.

    collect_set(x)
    """
    return call("collect_set", expression(x))


def listagg(s: Value, d: str | None = "") -> Expr:
    """All texts as one, the oldest first, with the delimiter d (a literal) between them. With WITHIN GROUP (ORDER BY
    y [DESC] [NULLS FIRST]) they come in the order of y. NULL if no value is left. Costs time and memory in the
    frame's size.

    listagg(s[, d])
    """
    return call("listagg", expression(s), literal_text(d))


def try_sum(x: Value) -> Expr:
    """Sum of the values, of the type of sum, NULL where it does not fit (never an error). NULL if no value is left.

    try_sum(x)
    """
    return call("try_sum", expression(x))


def try_avg(x: Value) -> Expr:
    """Mean of the values like avg, NULL where a decimal does not fit its type (never an error). NULL if no value is
    left.

    try_avg(x)
    """
    return call("try_avg", expression(x))


def product(x: Value) -> Expr:
    """Product of the values as a double. Only the result can overflow, no product of a part of the values can. NULL
    if no value is left.

    product(x)
    """
    return call("product", expression(x))


def count_if(condition: Value) -> Expr:
    """Number of rows where the condition is true (NULL counts as false); 0 for an empty window.

    count_if(condition)
    """
    return call("count_if", expression(condition))


def bool_or(b: Value) -> Expr:
    """Whether one of the values is true. NULL if no value is left.

    bool_or(b)
    """
    return call("bool_or", expression(b))


def bool_and(b: Value) -> Expr:
    """Whether all values are true. NULL if no value is left.

    bool_and(b)
    """
    return call("bool_and", expression(b))


def bit_and(x: Value) -> Expr:
    """AND of all values, bit by bit. NULL if no value is left.

    bit_and(x)
    """
    return call("bit_and", expression(x))


def bit_or(x: Value) -> Expr:
    """OR of all values, bit by bit. NULL if no value is left.

    bit_or(x)
    """
    return call("bit_or", expression(x))


def bit_xor(x: Value) -> Expr:
    """XOR (exclusive or) of all values, bit by bit. NULL if no value is left.

    bit_xor(x)
    """
    return call("bit_xor", expression(x))


def stddev(x: Value) -> Expr:
    """Standard deviation of a sample: the sum of the squared distances from the mean is divided by n - 1. The result
    is a double. It is accurate even if the values are far from zero, and whatever has left the window. NaN if one
    of the values is infinite or NaN. NULL for fewer than two values.

    stddev(x)
    """
    return call("stddev", expression(x))


def stddev_pop(x: Value) -> Expr:
    """Standard deviation of a population: the sum of the squared distances is divided by n. The result is a double.
    It is accurate even if the values are far from zero, and whatever has left the window. NaN if one of the
    values is infinite or NaN. NULL if no value is left.

    stddev_pop(x)
    """
    return call("stddev_pop", expression(x))


def var_samp(x: Value) -> Expr:
    """Variance of a sample, the square of stddev. The result is a double. It is accurate even if the values are far
    from zero, and whatever has left the window. NaN if one of the values is infinite or NaN. NULL for fewer than
    two values.

    var_samp(x)
    """
    return call("var_samp", expression(x))


def var_pop(x: Value) -> Expr:
    """Variance of a population, the square of stddev_pop. The result is a double. It is accurate even if the values
    are far from zero, and whatever has left the window. NaN if one of the values is infinite or NaN. NULL if no
    value is left.

    var_pop(x)
    """
    return call("var_pop", expression(x))


def median(x: Value) -> Expr:
    """Middle value as a double; for an even number of values, the mean of the two in the middle (OpenMLDB's sum of
    two large ints overflows, here it does not). NaN is the largest number. NULL if no value is left.

    median(x)
    """
    return call("median", expression(x))


def entropy(x: Value) -> Expr:
    """Shannon entropy of the values' frequencies in bits (log2), a double; 0 for one distinct value. All NaNs count
    as one value, and so do -0.0 and 0.0. NULL if no value is left.

    entropy(x)
    """
    return call("entropy", expression(x))


def nth_value_where(x: Value, n: int, condition: Value) -> Expr:
    """Value of the n-th row for which the condition is true (NULL counts as false): n > 0 counts from the oldest
    row, n < 0 from the newest. A row with a NULL value counts too. NULL if n = 0 or if there are fewer such rows.

    nth_value_where(x, n, condition)
    """
    return call("nth_value_where", expression(x), literal_text(n), expression(condition))


def ew_avg(x: Value, alpha: float | None) -> Expr:
    """Exponentially weighted mean as a double: the i-th newest non-NULL value, counted from 0, has the weight (1 -
    alpha)^i. A NULL alpha counts as 0 and gives the plain mean; alpha = 1 gives the newest value. NULL if no
    value is left.

    ew_avg(x, alpha)
    """
    return call("ew_avg", expression(x), literal_text(alpha))


def drawdown(x: Value) -> Expr:
    """Largest fall from a value to a later one, as a share of the earlier value: a double from 0 (it never falls) to
    1. Negative values are left out. NULL if no value is left, NaN if a value is NaN.

    drawdown(x)
    """
    return call("drawdown", expression(x))


def percentile(x: Value, p: float | Sequence[float], frequency: Value | None = None) -> Expr:
    """The value below which the share p (0 to 1, a literal) of the values is, as a double: between two values it is
    interpolated. With a frequency, an integer, each row counts that often (NULL and 0: not at all; a negative one
    is an error). With array(p1, p2, ...) for p it is an array<double> with a value for each. Also
    percentile_cont(p) WITHIN GROUP (ORDER BY x [DESC]), and percentile_disc, the first value at which at least
    the share p is passed, without interpolation. NaN is the largest number. NULL if no value is left.

    percentile(x, p[, frequency])
    """
    return call("percentile", expression(x), literal_text(p), *([] if frequency is None else [expression(frequency)]))


def percentile_approx(x: Value, p: float | Sequence[float], accuracy: int = 10000) -> Expr:
    """The smallest value at which at least the share p (0 to 1, a literal) of the values is passed, of their own
    type. Spark's may be off by 1 / accuracy of the number of values; this one is exact, so it is never further
    off, and accuracy has no effect. With array(p1, p2, ...) for p it is an array with a value for each. NaN is
    the largest number. NULL if no value is left.

    percentile_approx(x, p[, accuracy])
    """
    return call("percentile_approx", expression(x), literal_text(p), literal_text(accuracy))


def covar_pop(x: Value, y: Value) -> Expr:
    """Covariance of a population: divided by the number of rows n. NULL if no row is left. Rows in which x or y is
    NULL do not count. It is accurate even if the values are far from zero, and whatever has left the window.

    covar_pop(x, y)
    """
    return call("covar_pop", expression(x), expression(y))


def covar_samp(x: Value, y: Value) -> Expr:
    """Covariance of a sample: divided by n - 1. NULL for fewer than two rows. Rows in which x or y is NULL do not
    count. It is accurate even if the values are far from zero, and whatever has left the window.

    covar_samp(x, y)
    """
    return call("covar_samp", expression(x), expression(y))


def corr(x: Value, y: Value) -> Expr:
    """Pearson's correlation of x and y. NULL for fewer than two rows, or if all x or all y are equal. Rows in which
    x or y is NULL do not count. It is accurate even if the values are far from zero, and whatever has left the
    window.

    corr(x, y)
    """
    return call("corr", expression(x), expression(y))


def regr_count(y: Value, x: Value) -> Expr:
    """Number of rows with both values; 0 for an empty window. Rows in which x or y is NULL do not count. It is
    accurate even if the values are far from zero, and whatever has left the window.

    regr_count(y, x)
    """
    return call("regr_count", expression(y), expression(x))


def regr_avgx(y: Value, x: Value) -> Expr:
    """Mean of x over the rows with both values, as avg gives it. NULL if no row is left.

    regr_avgx(y, x)
    """
    return call("regr_avgx", expression(y), expression(x))


def regr_avgy(y: Value, x: Value) -> Expr:
    """Mean of y over the rows with both values, as avg gives it. NULL if no row is left.

    regr_avgy(y, x)
    """
    return call("regr_avgy", expression(y), expression(x))


def regr_sxx(y: Value, x: Value) -> Expr:
    """Sum of the squared distances of x from its mean. NULL if no row is left. Rows in which x or y is NULL do not
    count. It is accurate even if the values are far from zero, and whatever has left the window.

    regr_sxx(y, x)
    """
    return call("regr_sxx", expression(y), expression(x))


def regr_syy(y: Value, x: Value) -> Expr:
    """Sum of the squared distances of y from its mean. NULL if no row is left. Rows in which x or y is NULL do not
    count. It is accurate even if the values are far from zero, and whatever has left the window.

    regr_syy(y, x)
    """
    return call("regr_syy", expression(y), expression(x))


def regr_sxy(y: Value, x: Value) -> Expr:
    """Sum of the products of the distances of x and y from their means. NULL if no row is left. Rows in which x or y
    is NULL do not count. It is accurate even if the values are far from zero, and whatever has left the window.

    regr_sxy(y, x)
    """
    return call("regr_sxy", expression(y), expression(x))


def regr_slope(y: Value, x: Value) -> Expr:
    """Slope of the line through the points (x, y) by least squares. NULL if no row is left or if all x are equal.
    Rows in which x or y is NULL do not count. It is accurate even if the values are far from zero, and whatever
    has left the window.

    regr_slope(y, x)
    """
    return call("regr_slope", expression(y), expression(x))


def regr_intercept(y: Value, x: Value) -> Expr:
    """Where the line of regr_slope meets x = 0. NULL if no row is left or if all x are equal. Rows in which x or y
    is NULL do not count. It is accurate even if the values are far from zero, and whatever has left the window.

    regr_intercept(y, x)
    """
    return call("regr_intercept", expression(y), expression(x))


def regr_r2(y: Value, x: Value) -> Expr:
    """Square of the correlation of x and y; 1 if all y are equal. NULL if no row is left or if all x are equal. Rows
    in which x or y is NULL do not count. It is accurate even if the values are far from zero, and whatever has
    left the window.

    regr_r2(y, x)
    """
    return call("regr_r2", expression(y), expression(x))


def skewness(x: Value) -> Expr:
    """Skewness: the mean third power of the distance from the mean, in units of stddev_pop, a double. NULL if no
    value is left or if all values are equal, NaN if one is infinite or NaN.

    skewness(x)
    """
    return call("skewness", expression(x))


def kurtosis(x: Value) -> Expr:
    """Excess kurtosis: the mean fourth power of the distance from the mean, less 3, in units of stddev_pop, a
    double. NULL if no value is left or if all values are equal, NaN if one is infinite or NaN.

    kurtosis(x)
    """
    return call("kurtosis", expression(x))


def top(x: Value, n: int) -> Expr:
    """The n largest values as one text, the largest first; equal values are repeated: '4,4,3'. '' if no value is
    left. Floats and doubles are written with six decimals (1.500000, nan, inf), dates as 2020-05-29, and
    timestamps as 2020-05-29 15:56:29 in the session's time zone.

    top(x, n)
    """
    return call("top", expression(x), literal_text(n))


def topn_frequency(x: Value, n: int) -> Expr:
    """The n most frequent values as one text, filled up with NULL: '1,NULL,NULL'. Of equally frequent values the
    smaller comes first. '' for a window without rows; n is at most 1024. -0.0 and 0.0 count as one value, and so
    do all NaNs, which are the largest. Floats and doubles are written with six decimals (1.500000, nan, inf),
    dates as 2020-05-29, and timestamps as 2020-05-29 15:56:29 in the session's time zone.

    topn_frequency(x, n)
    """
    return call("topn_frequency", expression(x), literal_text(n))


def top1_ratio(x: Value) -> Expr:
    """Share of the most frequent value among all values, a double; 0 if no value is left. -0.0 and 0.0 count as one
    value, and so do all NaNs.

    top1_ratio(x)
    """
    return call("top1_ratio", expression(x))


def window_split(s: Value, d: str) -> Expr:
    """The parts of all strings, split at d, as array<string>: newest row first, the parts of each row in their
    order. A NULL string or an empty delimiter gives no parts. Delimiters are plain text (in OpenMLDB, delimiters
    of several characters are regular expressions). All parts are kept; OpenMLDB silently drops those beyond 4096
    bytes in total.

    window_split(s, d)
    """
    return call("window_split", expression(s), literal_text(d))


def window_split_by_key(s: Value, d: str, kv: str) -> Expr:
    """Like window_split, but takes from each part only the text before the first kv: the k of 'k:v'. Parts without
    kv are left out. A NULL string or an empty delimiter gives no parts. Delimiters are plain text (in OpenMLDB,
    delimiters of several characters are regular expressions). All parts are kept; OpenMLDB silently drops those
    beyond 4096 bytes in total.

    window_split_by_key(s, d, kv)
    """
    return call("window_split_by_key", expression(s), literal_text(d), literal_text(kv))


def window_split_by_value(s: Value, d: str, kv: str) -> Expr:
    """Like window_split, but takes from each part only the text between the first kv and the second one (or the
    end): the v of 'k:v'. Parts without kv are left out. A NULL string or an empty delimiter gives no parts.
    Delimiters are plain text (in OpenMLDB, delimiters of several characters are regular expressions). All parts
    are kept; OpenMLDB silently drops those beyond 4096 bytes in total.

    window_split_by_value(s, d, kv)
    """
    return call("window_split_by_value", expression(s), literal_text(d), literal_text(kv))


def count_cate(x: Value, cate: Value) -> Expr:
    """Number of non-NULL values of each category, as `key:value,key:value`, in ascending order of the keys. Rows
    where x or cate is NULL are left out. Integers are written as they are; float, double and means with six
    decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time zone, without
    fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    count_cate(x, cate)
    """
    return call("count_cate", expression(x), expression(cate))


def count_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Number of non-NULL values of each category, over the rows where the condition is true (NULL counts as false),
    as `key:value,key:value`, in ascending order of the keys. Rows where x or cate is NULL are left out. Integers
    are written as they are; float, double and means with six decimals (`%f`); dates as 2020-05-29; timestamps as
    2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if no row is left. The text
    is never cut off (OpenMLDB stops at 4096 bytes).

    count_cate_where(x, condition, cate)
    """
    return call("count_cate_where", expression(x), expression(condition), expression(cate))


def top_n_key_count_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Number of non-NULL values of each category, over the rows where the condition is true (NULL counts as false),
    as `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n = 0). Rows
    where x or cate is NULL are left out. Integers are written as they are; float, double and means with six
    decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time zone, without
    fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    top_n_key_count_cate_where(x, condition, cate, n)
    """
    return call("top_n_key_count_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def top_n_value_count_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Number of non-NULL values of each category, over the rows where the condition is true (NULL counts as false),
    as `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if n = 0). Of
    equal values the one with the larger key comes first. Rows where x or cate is NULL are left out. Integers are
    written as they are; float, double and means with six decimals (`%f`); dates as 2020-05-29; timestamps as
    2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if no row is left. The text
    is never cut off (OpenMLDB stops at 4096 bytes).

    top_n_value_count_cate_where(x, condition, cate, n)
    """
    return call("top_n_value_count_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def sum_cate(x: Value, cate: Value) -> Expr:
    """Sum of the values of each category, as `key:value,key:value`, in ascending order of the keys. Rows where x or
    cate is NULL are left out. A sum of integers is a bigint, which wraps on overflow (an error under ANSI); a sum
    of float or double is a double, exact and rounded once. With compat="openmldb" sums keep the type of x.
    Integers are written as they are; float, double and means with six decimals (`%f`); dates as 2020-05-29;
    timestamps as 2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if no row is
    left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    sum_cate(x, cate)
    """
    return call("sum_cate", expression(x), expression(cate))


def sum_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Sum of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, in ascending order of the keys. Rows where x or cate is NULL are left out. A sum of
    integers is a bigint, which wraps on overflow (an error under ANSI); a sum of float or double is a double,
    exact and rounded once. With compat="openmldb" sums keep the type of x. Integers are written as they are;
    float, double and means with six decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in
    the session's time zone, without fractions of a second. '' if no row is left. The text is never cut off
    (OpenMLDB stops at 4096 bytes).

    sum_cate_where(x, condition, cate)
    """
    return call("sum_cate_where", expression(x), expression(condition), expression(cate))


def top_n_key_sum_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Sum of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n = 0). Rows
    where x or cate is NULL are left out. A sum of integers is a bigint, which wraps on overflow (an error under
    ANSI); a sum of float or double is a double, exact and rounded once. With compat="openmldb" sums keep the type
    of x. Integers are written as they are; float, double and means with six decimals (`%f`); dates as 2020-05-29;
    timestamps as 2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if no row is
    left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    top_n_key_sum_cate_where(x, condition, cate, n)
    """
    return call("top_n_key_sum_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def top_n_value_sum_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Sum of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if n = 0). Of
    equal values the one with the larger key comes first. Rows where x or cate is NULL are left out. A sum of
    integers is a bigint, which wraps on overflow (an error under ANSI); a sum of float or double is a double,
    exact and rounded once. With compat="openmldb" sums keep the type of x. Integers are written as they are;
    float, double and means with six decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in
    the session's time zone, without fractions of a second. '' if no row is left. The text is never cut off
    (OpenMLDB stops at 4096 bytes).

    top_n_value_sum_cate_where(x, condition, cate, n)
    """
    return call("top_n_value_sum_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def avg_cate(x: Value, cate: Value) -> Expr:
    """Mean of the values of each category, as `key:value,key:value`, in ascending order of the keys. Rows where x or
    cate is NULL are left out. The mean is the exact sum, rounded to double and divided by the count. Integers are
    written as they are; float, double and means with six decimals (`%f`); dates as 2020-05-29; timestamps as
    2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if no row is left. The text
    is never cut off (OpenMLDB stops at 4096 bytes).

    avg_cate(x, cate)
    """
    return call("avg_cate", expression(x), expression(cate))


def avg_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Mean of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, in ascending order of the keys. Rows where x or cate is NULL are left out. The mean is
    the exact sum, rounded to double and divided by the count. Integers are written as they are; float, double and
    means with six decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time
    zone, without fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB stops at 4096
    bytes).

    avg_cate_where(x, condition, cate)
    """
    return call("avg_cate_where", expression(x), expression(condition), expression(cate))


def top_n_key_avg_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Mean of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n = 0). Rows
    where x or cate is NULL are left out. The mean is the exact sum, rounded to double and divided by the count.
    Integers are written as they are; float, double and means with six decimals (`%f`); dates as 2020-05-29;
    timestamps as 2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if no row is
    left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    top_n_key_avg_cate_where(x, condition, cate, n)
    """
    return call("top_n_key_avg_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def top_n_value_avg_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Mean of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if n = 0). Of
    equal values the one with the larger key comes first. Rows where x or cate is NULL are left out. The mean is
    the exact sum, rounded to double and divided by the count. Integers are written as they are; float, double and
    means with six decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time
    zone, without fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB stops at 4096
    bytes).

    top_n_value_avg_cate_where(x, condition, cate, n)
    """
    return call("top_n_value_avg_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def min_cate(x: Value, cate: Value) -> Expr:
    """Smallest value of each category, as `key:value,key:value`, in ascending order of the keys. Rows where x or
    cate is NULL are left out. NaN is the largest number. Integers are written as they are; float, double and
    means with six decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time
    zone, without fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB stops at 4096
    bytes).

    min_cate(x, cate)
    """
    return call("min_cate", expression(x), expression(cate))


def min_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Smallest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, in ascending order of the keys. Rows where x or cate is NULL are left out. NaN is the
    largest number. Integers are written as they are; float, double and means with six decimals (`%f`); dates as
    2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if
    no row is left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    min_cate_where(x, condition, cate)
    """
    return call("min_cate_where", expression(x), expression(condition), expression(cate))


def top_n_key_min_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Smallest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n = 0). Rows
    where x or cate is NULL are left out. NaN is the largest number. Integers are written as they are; float,
    double and means with six decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the
    session's time zone, without fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB
    stops at 4096 bytes).

    top_n_key_min_cate_where(x, condition, cate, n)
    """
    return call("top_n_key_min_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def top_n_value_min_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Smallest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if n = 0). Of
    equal values the one with the larger key comes first. Rows where x or cate is NULL are left out. NaN is the
    largest number. Integers are written as they are; float, double and means with six decimals (`%f`); dates as
    2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if
    no row is left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    top_n_value_min_cate_where(x, condition, cate, n)
    """
    return call("top_n_value_min_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def max_cate(x: Value, cate: Value) -> Expr:
    """Largest value of each category, as `key:value,key:value`, in ascending order of the keys. Rows where x or cate
    is NULL are left out. NaN is the largest number. Integers are written as they are; float, double and means
    with six decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time zone,
    without fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    max_cate(x, cate)
    """
    return call("max_cate", expression(x), expression(cate))


def max_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Largest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, in ascending order of the keys. Rows where x or cate is NULL are left out. NaN is the
    largest number. Integers are written as they are; float, double and means with six decimals (`%f`); dates as
    2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if
    no row is left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    max_cate_where(x, condition, cate)
    """
    return call("max_cate_where", expression(x), expression(condition), expression(cate))


def top_n_key_max_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Largest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n = 0). Rows
    where x or cate is NULL are left out. NaN is the largest number. Integers are written as they are; float,
    double and means with six decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the
    session's time zone, without fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB
    stops at 4096 bytes).

    top_n_key_max_cate_where(x, condition, cate, n)
    """
    return call("top_n_key_max_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def top_n_value_max_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Largest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if n = 0). Of
    equal values the one with the larger key comes first. Rows where x or cate is NULL are left out. NaN is the
    largest number. Integers are written as they are; float, double and means with six decimals (`%f`); dates as
    2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if
    no row is left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    top_n_value_max_cate_where(x, condition, cate, n)
    """
    return call("top_n_value_max_cate_where", expression(x), expression(condition), expression(cate), literal_text(n))


def top_n_key_ratio_cate(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Share of the rows where the condition is true among all rows of each category, as `key:share,key:share`, for
    the n largest keys in descending order (all of them if n < 0, '' if n = 0). Rows where x or cate is NULL are
    left out; a NULL condition counts as false. Integers are written as they are; float, double and means with six
    decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time zone, without
    fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    top_n_key_ratio_cate(x, condition, cate, n)
    """
    return call("top_n_key_ratio_cate", expression(x), expression(condition), expression(cate), literal_text(n))


def top_n_value_ratio_cate(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Share of the rows where the condition is true among all rows of each category, as `key:share,key:share`, for
    the n largest shares in descending order (all of them if n < 0, '' if n = 0). Rows where x or cate is NULL are
    left out; a NULL condition counts as false. Integers are written as they are; float, double and means with six
    decimals (`%f`); dates as 2020-05-29; timestamps as 2020-05-29 15:56:30 in the session's time zone, without
    fractions of a second. '' if no row is left. The text is never cut off (OpenMLDB stops at 4096 bytes).

    top_n_value_ratio_cate(x, condition, cate, n)
    """
    return call("top_n_value_ratio_cate", expression(x), expression(condition), expression(cate), literal_text(n))


mean = avg
first = first_value
any_value = first_value
last = last_value
at = lag
array_agg = collect_list
string_agg = listagg
some = bool_or
every = bool_and
std = stddev
stddev_samp = stddev
variance = var_samp
approx_percentile = percentile_approx
fz_topn_frequency = topn_frequency
fz_top1_ratio = top1_ratio
fz_window_split = window_split
fz_window_split_by_key = window_split_by_key
fz_window_split_by_value = window_split_by_value
