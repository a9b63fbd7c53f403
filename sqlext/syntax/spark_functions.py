"""Names of Spark 4.3's own functions, by the kinds that matter to the parser and the analyzer."""

from __future__ import annotations

#: Spark's built-in aggregates (the `agg_funcs` group of its documentation, aliases included).
AGGREGATES = frozenset(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine
    array_agg avg bit_and bit_or bit_xor bitmap_construct_agg bitmap_or_agg bitmap_and_agg bool_and bool_or
    collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every first first_value grouping
    grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_sketch_agg_bigint kll_sketch_agg_double
    kll_sketch_agg_float kurtosis last last_value listagg max max_by mean median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy schema_of_avro skewness some std stddev stddev_pop stddev_samp string_agg sum
    theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum var_pop var_samp variance
    """.split()  # noqa: SIM905 - a table of words
)

#: What Spark can call with OVER: aggregates and the ranking and offset functions.
WINDOW_FUNCTIONS = AGGREGATES | frozenset(
    "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number".split()  # noqa: SIM905 - a table of words
)

#: Functions that may give another result each time.
NONDETERMINISTIC = frozenset(
    """
    input_file_block_length input_file_block_start input_file_name monotonically_increasing_id rand randn random
    randstr reflect java_method shuffle spark_partition_id uniform uuid try_reflect
    """.split()  # noqa: SIM905 - a table of words
)

#: Functions called without parentheses if no column has the name: their types, and what Spark calls them.
LITERAL_FUNCTIONS = {
    "current_date": ("date", "current_date()"),
    "current_timestamp": ("timestamp", "current_timestamp()"),
    "current_time": ("time(6)", "current_time(6)"),
    "localtime": ("time(6)", "current_time(6)"),
    "current_user": ("string", "current_user()"),
    "session_user": ("string", "current_user()"),
    "user": ("string", "current_user()"),
}

#: First arguments of the date functions that take a unit (`timestampadd(DAY, 1, ts)`): words, not columns.
DATE_UNITS = frozenset(
    """
    year quarter month week day dayofyear hour minute second millisecond microsecond years quarters months weeks days
    hours minutes seconds milliseconds microseconds
    """.split()  # noqa: SIM905 - a table of words
)
UNIT_FUNCTIONS = frozenset("date_add dateadd date_diff datediff timestampadd timestampdiff".split())  # noqa: SIM905
