"""The window functions. Written by `python docs/functions.py`."""

from __future__ import annotations

from sqlext.builders.expressions import Expr, Value, call, expression
from sqlext.builders.text import literal_text

__all__ = [
    "at",
    "avg",
    "avg_cate",
    "avg_cate_where",
    "avg_where",
    "count",
    "count_cate",
    "count_cate_where",
    "count_where",
    "distinct_count",
    "drawdown",
    "entropy",
    "ew_avg",
    "first_value",
    "fz_top1_ratio",
    "fz_topn_frequency",
    "fz_window_split",
    "fz_window_split_by_key",
    "fz_window_split_by_value",
    "lag",
    "last_value",
    "max",
    "max_cate",
    "max_cate_where",
    "max_where",
    "median",
    "min",
    "min_cate",
    "min_cate_where",
    "min_where",
    "nth_value_where",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
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
    """Value of the oldest row of the window; with ignore_null, of the oldest row whose value is not NULL. NULL if
    there is no such row.

    first_value(x[, ignore_null])
    """
    return call("first_value", expression(x), literal_text(ignore_null))


def last_value(x: Value, ignore_null: bool = False) -> Expr:
    """Value of the newest row of the window; with ignore_null, of the newest row whose value is not NULL. NULL if
    there is no such row.

    last_value(x[, ignore_null])
    """
    return call("last_value", expression(x), literal_text(ignore_null))


def lag(x: Value, n: int = 1) -> Expr:
    """Value of the row n places before the current row. It counts rows of the partition, not of the frame (but
    EXCLUDE CURRENT_TIME and INSTANCE_NOT_IN_WINDOW still leave rows out). n = 0 is the current row. NULL if there
    is no such row.

    lag(x[, n])
    """
    return call("lag", expression(x), literal_text(n))


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


at = lag
std = stddev
stddev_samp = stddev
variance = var_samp
fz_topn_frequency = topn_frequency
fz_top1_ratio = top1_ratio
fz_window_split = window_split
fz_window_split_by_key = window_split_by_key
fz_window_split_by_value = window_split_by_value
