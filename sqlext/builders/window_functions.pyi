"""Written by `python docs/functions.py`."""

from collections.abc import Sequence

from sqlext.builders.expressions import Expr, Value

__all__ = ["any_value", "approx_count_distinct", "approx_percentile", "array_agg", "at", "avg", "avg_cate"]
__all__ += ["avg_cate_where", "avg_where", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "collect_list"]
__all__ += ["collect_set", "corr", "count", "count_cate", "count_cate_where", "count_if", "count_where", "covar_pop"]
__all__ += ["covar_samp", "distinct_count", "drawdown", "entropy", "every", "ew_avg", "first", "first_value"]
__all__ += ["fz_top1_ratio", "fz_topn_frequency", "fz_window_split", "fz_window_split_by_key"]
__all__ += ["fz_window_split_by_value", "kurtosis", "lag", "last", "last_value", "lead", "listagg", "max", "max_by"]
__all__ += ["max_cate", "max_cate_where", "max_where", "mean", "median", "min", "min_by", "min_cate"]
__all__ += ["min_cate_where", "min_where", "mode", "nth_value", "nth_value_where", "percentile", "percentile_approx"]
__all__ += ["product", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx"]
__all__ += ["regr_sxy", "regr_syy", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg"]
__all__ += ["sum", "sum_cate", "sum_cate_where", "sum_where", "top", "top1_ratio", "top_n_key_avg_cate_where"]
__all__ += ["top_n_key_count_cate_where", "top_n_key_max_cate_where", "top_n_key_min_cate_where"]
__all__ += ["top_n_key_ratio_cate", "top_n_key_sum_cate_where", "top_n_value_avg_cate_where"]
__all__ += ["top_n_value_count_cate_where", "top_n_value_max_cate_where", "top_n_value_min_cate_where"]
__all__ += ["top_n_value_ratio_cate", "top_n_value_sum_cate_where", "topn_frequency", "try_avg", "try_sum"]
__all__ += ["var_pop", "var_samp", "variance", "window_split", "window_split_by_key", "window_split_by_value"]

def approx_count_distinct(x: Value, rsd: float = 0.05) -> Expr:
    """Number of distinct values, 0 for an empty window."""

def avg(x: Value) -> Expr:
    """Mean of the values."""

def avg_cate(x: Value, cate: Value) -> Expr:
    """Mean of the values of each category, as `key:value,key:value`, in ascending order of the keys."""

def avg_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Mean of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, in ascending order of the keys."""

def avg_where(x: Value, condition: Value) -> Expr:
    """Mean of the values where the condition is true (NULL counts as false)."""

def bit_and(x: Value) -> Expr:
    """AND of all values, bit by bit."""

def bit_or(x: Value) -> Expr:
    """OR of all values, bit by bit."""

def bit_xor(x: Value) -> Expr:
    """XOR (exclusive or) of all values, bit by bit."""

def bool_and(b: Value) -> Expr:
    """Whether all values are true."""

def bool_or(b: Value) -> Expr:
    """Whether one of the values is true."""

def collect_list(x: Value) -> Expr:
    """All values as an array, the oldest first; an empty one for an empty window."""

def collect_set(x: Value) -> Expr:
    """The distinct values as an array, in the order in which they come first (Spark promises none)."""

def corr(x: Value, y: Value) -> Expr:
    """Pearson's correlation of x and y."""

def count(x: Value = "*") -> Expr:
    """Number of non-NULL values, or of rows for count(*); 0 for an empty window."""

def count_cate(x: Value, cate: Value) -> Expr:
    """Number of non-NULL values of each category, as `key:value,key:value`, in ascending order of the keys."""

def count_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Number of non-NULL values of each category, over the rows where the condition is true (NULL counts as
    false), as `key:value,key:value`, in ascending order of the keys."""

def count_if(condition: Value) -> Expr:
    """Number of rows where the condition is true (NULL counts as false); 0 for an empty window."""

def count_where(x: Value, condition: Value) -> Expr:
    """Number of non-NULL values, or of rows for *, where the condition is true."""

def covar_pop(x: Value, y: Value) -> Expr:
    """Covariance of a population: divided by the number of rows n."""

def covar_samp(x: Value, y: Value) -> Expr:
    """Covariance of a sample: divided by n - 1."""

def distinct_count(x: Value) -> Expr:
    """Number of distinct values; 0 for an empty window."""

def drawdown(x: Value) -> Expr:
    """Largest fall from a value to a later one, as a share of the earlier value: a double from 0 (it never falls)
    to 1."""

def entropy(x: Value) -> Expr:
    """Shannon entropy of the values' frequencies in bits (log2), a double; 0 for one distinct value."""

def ew_avg(x: Value, alpha: float | None) -> Expr:
    """Exponentially weighted mean as a double: the i-th newest non-NULL value, counted from 0, has the weight (1
    - alpha)^i."""

def first_value(x: Value, ignore_null: bool = False) -> Expr:
    """Value of the oldest row of the window; with ignore_null or IGNORE NULLS, of the oldest row whose value is
    not NULL."""

def kurtosis(x: Value) -> Expr:
    """Excess kurtosis: the mean fourth power of the distance from the mean, less 3, in units of stddev_pop, a
    double."""

def lag(x: Value, n: int = 1, default: Value | None = None) -> Expr:
    """Value of the row n places before the current row."""

def last_value(x: Value, ignore_null: bool = False) -> Expr:
    """Value of the newest row of the window; with ignore_null or IGNORE NULLS, of the newest row whose value is
    not NULL."""

def lead(x: Value, n: int = 1, default: Value | None = None) -> Expr:
    """Value of the row n places after the current row."""

def listagg(s: Value, d: str | None = "") -> Expr:
    """All texts as one, the oldest first, with the delimiter d (a literal) between them."""

def max(x: Value) -> Expr:
    """Largest value."""

def max_by(x: Value, y: Value) -> Expr:
    """The x of the row with the largest y that is not NULL; of several such rows, the newest one's."""

def max_cate(x: Value, cate: Value) -> Expr:
    """Largest value of each category, as `key:value,key:value`, in ascending order of the keys."""

def max_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Largest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, in ascending order of the keys."""

def max_where(x: Value, condition: Value) -> Expr:
    """Largest value where the condition is true (NULL counts as false)."""

def median(x: Value) -> Expr:
    """Middle value as a double; for an even number of values, the mean of the two in the middle (OpenMLDB's sum
    of two large ints overflows, here it does not)."""

def min(x: Value) -> Expr:
    """Smallest value."""

def min_by(x: Value, y: Value) -> Expr:
    """The x of the row with the smallest y that is not NULL; of several such rows, the newest one's."""

def min_cate(x: Value, cate: Value) -> Expr:
    """Smallest value of each category, as `key:value,key:value`, in ascending order of the keys."""

def min_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Smallest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, in ascending order of the keys."""

def min_where(x: Value, condition: Value) -> Expr:
    """Smallest value where the condition is true (NULL counts as false)."""

def mode(x: Value, deterministic: bool = True) -> Expr:
    """The most frequent value; of equally frequent ones the smallest (Spark promises that only with
    deterministic; here it always is)."""

def nth_value(x: Value, n: int, ignore_null: bool = False) -> Expr:
    """Value of the n-th oldest row of the window, 1 for the oldest; with ignore_null or IGNORE NULLS, of the n-th
    one whose value is not NULL."""

def nth_value_where(x: Value, n: int, condition: Value) -> Expr:
    """Value of the n-th row for which the condition is true (NULL counts as false): n > 0 counts from the oldest
    row, n < 0 from the newest."""

def percentile(x: Value, p: float | Sequence[float], frequency: Value | None = None) -> Expr:
    """The value below which the share p (0 to 1, a literal) of the values is, as a double: between two values it
    is interpolated."""

def percentile_approx(x: Value, p: float | Sequence[float], accuracy: int = 10000) -> Expr:
    """The smallest value at which at least the share p (0 to 1, a literal) of the values is passed, of their own
    type."""

def product(x: Value) -> Expr:
    """Product of the values as a double."""

def regr_avgx(y: Value, x: Value) -> Expr:
    """Mean of x over the rows with both values, as avg gives it."""

def regr_avgy(y: Value, x: Value) -> Expr:
    """Mean of y over the rows with both values, as avg gives it."""

def regr_count(y: Value, x: Value) -> Expr:
    """Number of rows with both values; 0 for an empty window."""

def regr_intercept(y: Value, x: Value) -> Expr:
    """Where the line of regr_slope meets x = 0."""

def regr_r2(y: Value, x: Value) -> Expr:
    """Square of the correlation of x and y; 1 if all y are equal."""

def regr_slope(y: Value, x: Value) -> Expr:
    """Slope of the line through the points (x, y) by least squares."""

def regr_sxx(y: Value, x: Value) -> Expr:
    """Sum of the squared distances of x from its mean."""

def regr_sxy(y: Value, x: Value) -> Expr:
    """Sum of the products of the distances of x and y from their means."""

def regr_syy(y: Value, x: Value) -> Expr:
    """Sum of the squared distances of y from its mean."""

def skewness(x: Value) -> Expr:
    """Skewness: the mean third power of the distance from the mean, in units of stddev_pop, a double."""

def stddev(x: Value) -> Expr:
    """Standard deviation of a sample: the sum of the squared distances from the mean is divided by n - 1."""

def stddev_pop(x: Value) -> Expr:
    """Standard deviation of a population: the sum of the squared distances is divided by n."""

def sum(x: Value) -> Expr:
    """Sum of the values."""

def sum_cate(x: Value, cate: Value) -> Expr:
    """Sum of the values of each category, as `key:value,key:value`, in ascending order of the keys."""

def sum_cate_where(x: Value, condition: Value, cate: Value) -> Expr:
    """Sum of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, in ascending order of the keys."""

def sum_where(x: Value, condition: Value) -> Expr:
    """Sum of the values where the condition is true (NULL counts as false)."""

def top(x: Value, n: int) -> Expr:
    """The n largest values as one text, the largest first; equal values are repeated: '4,4,3'."""

def top1_ratio(x: Value) -> Expr:
    """Share of the most frequent value among all values, a double; 0 if no value is left."""

def top_n_key_avg_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Mean of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n = 0)."""

def top_n_key_count_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Number of non-NULL values of each category, over the rows where the condition is true (NULL counts as
    false), as `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n
    = 0)."""

def top_n_key_max_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Largest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n = 0)."""

def top_n_key_min_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Smallest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n = 0)."""

def top_n_key_ratio_cate(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Share of the rows where the condition is true among all rows of each category, as `key:share,key:share`,
    for the n largest keys in descending order (all of them if n < 0, '' if n = 0)."""

def top_n_key_sum_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Sum of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest keys in descending order (all of them if n < 0, '' if n = 0)."""

def top_n_value_avg_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Mean of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if n = 0)."""

def top_n_value_count_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Number of non-NULL values of each category, over the rows where the condition is true (NULL counts as
    false), as `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if
    n = 0)."""

def top_n_value_max_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Largest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if n = 0)."""

def top_n_value_min_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Smallest value of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if n = 0)."""

def top_n_value_ratio_cate(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Share of the rows where the condition is true among all rows of each category, as `key:share,key:share`,
    for the n largest shares in descending order (all of them if n < 0, '' if n = 0)."""

def top_n_value_sum_cate_where(x: Value, condition: Value, cate: Value, n: int) -> Expr:
    """Sum of the values of each category, over the rows where the condition is true (NULL counts as false), as
    `key:value,key:value`, for the n largest values in descending order (all of them if n < 0, '' if n = 0)."""

def topn_frequency(x: Value, n: int) -> Expr:
    """The n most frequent values as one text, filled up with NULL: '1,NULL,NULL'."""

def try_avg(x: Value) -> Expr:
    """Mean of the values like avg, NULL where a decimal does not fit its type (never an error)."""

def try_sum(x: Value) -> Expr:
    """Sum of the values, of the type of sum, NULL where it does not fit (never an error)."""

def var_pop(x: Value) -> Expr:
    """Variance of a population, the square of stddev_pop."""

def var_samp(x: Value) -> Expr:
    """Variance of a sample, the square of stddev."""

def window_split(s: Value, d: str) -> Expr:
    """The parts of all strings, split at d, as array<string>: newest row first, the parts of each row in their
    order."""

def window_split_by_key(s: Value, d: str, kv: str) -> Expr:
    """Like window_split, but takes from each part only the text before the first kv: the k of 'k:v'."""

def window_split_by_value(s: Value, d: str, kv: str) -> Expr:
    """Like window_split, but takes from each part only the text between the first kv and the second one (or the
    end): the v of 'k:v'."""

any_value = first_value
approx_percentile = percentile_approx
array_agg = collect_list
at = lag
every = bool_and
first = first_value
fz_top1_ratio = top1_ratio
fz_topn_frequency = topn_frequency
fz_window_split = window_split
fz_window_split_by_key = window_split_by_key
fz_window_split_by_value = window_split_by_value
last = last_value
mean = avg
some = bool_or
std = stddev
stddev_samp = stddev
string_agg = listagg
variance = var_samp
