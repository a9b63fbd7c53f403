-- The three most frequent values of `found` and '', the more frequent first, then the smaller; padded with 'NULL'.
-- `s` holds them sorted, `p` the places where a value begins: lengths of runs instead of a count for each value.
CREATE OR REPLACE TEMPORARY FUNCTION top3(found ARRAY<STRING>) RETURNS STRING RETURN
  CASE WHEN size(found) = 0 THEN ',NULL,NULL' ELSE transform(
    array(sort_array(array_append(found, ''))), s -> transform(
      array(filter(sequence(0, size(s) - 1), i -> i = 0 OR s[i] <> s[i - 1])), p -> array_join(
        slice(concat(slice(sort_array(transform(
          p, (b, j) -> struct(b - coalesce(get(p, j + 1), size(s)) AS minus_n, s[b] AS value))), 1, 3).value,
          array('NULL', 'NULL')), 1, 3), ','))[0])[0] END;

-- The same with integers and 0.
CREATE OR REPLACE TEMPORARY FUNCTION top3_numbers(found ARRAY<BIGINT>) RETURNS STRING RETURN
  CASE WHEN size(found) = 0 THEN '0,NULL,NULL' ELSE transform(
    array(sort_array(array_append(found, 0L))), s -> transform(
      array(filter(sequence(0, size(s) - 1), i -> i = 0 OR s[i] <> s[i - 1])), p -> array_join(
        slice(concat(CAST(slice(sort_array(transform(
          p, (b, j) -> struct(b - coalesce(get(p, j + 1), size(s)) AS minus_n, s[b] AS value))), 1, 3).value AS ARRAY<STRING>),
          array('NULL', 'NULL')), 1, 3), ','))[0])[0] END;

WITH
-- Each application is one request, and has its own history: its newest rows are numbered and aggregated, so that nothing
-- is computed for other rows than requests. What the request itself adds ('' or 0) is added to the aggregates.
pos AS (
  SELECT
    id,
    bo_POS_CASH_balance_Q4_Col199_multi_avg_3,
    bo_POS_CASH_balance_Q4_Col199_multi_avg_4,
    bo_POS_CASH_balance_Q4_Col200_multi_avg_5,
    bo_POS_CASH_balance_Q4_Col199_multi_max_27,
    bo_POS_CASH_balance_Q4_Col200_multi_max_28,
    bo_POS_CASH_balance_Q4_Col200_multi_min_47,
    top3_numbers(Q4_Col3_100) AS bo_POS_CASH_balance_Q4_Col3_multi_top3frequency_59,
    top3(Q4_Col21_100) AS bo_POS_CASH_balance_Q4_Col21_multi_top3frequency_60,
    top3_numbers(Q4_Col22_100) AS bo_POS_CASH_balance_Q4_Col22_multi_top3frequency_61,
    top3_numbers(Q4_Col22_10) AS bo_POS_CASH_balance_Q4_Col22_multi_top3frequency_62,
    bo_POS_CASH_balance_Q4_Col3_multi_unique_count_75,
    bo_POS_CASH_balance_Q4_Col3_multi_unique_count_76,
    bo_POS_CASH_balance_Q4_Col1_multi_unique_count_77,
    top3_numbers(Q4_Col23_100) AS bo_POS_CASH_balance_Q4_Col23_multi_top3frequency_224
  FROM (
    SELECT
      id,
      coalesce(sum(Q4_Col199), 0) / (count(Q4_Col199) + 1) AS bo_POS_CASH_balance_Q4_Col199_multi_avg_3,
      coalesce(sum(Q4_Col199) FILTER (WHERE n <= 10), 0) / (count(Q4_Col199) FILTER (WHERE n <= 10) + 1) AS bo_POS_CASH_balance_Q4_Col199_multi_avg_4,
      coalesce(sum(Q4_Col200) FILTER (WHERE n <= 10), 0) / (count(Q4_Col200) FILTER (WHERE n <= 10) + 1) AS bo_POS_CASH_balance_Q4_Col200_multi_avg_5,
      greatest(max(Q4_Col199), 0) AS bo_POS_CASH_balance_Q4_Col199_multi_max_27,
      greatest(max(Q4_Col200), 0) AS bo_POS_CASH_balance_Q4_Col200_multi_max_28,
      least(min(Q4_Col200) FILTER (WHERE n <= 10), 0) AS bo_POS_CASH_balance_Q4_Col200_multi_min_47,
      collect_list(Q4_Col3) AS Q4_Col3_100,
      collect_list(Q4_Col21) AS Q4_Col21_100,
      collect_list(Q4_Col22) AS Q4_Col22_100,
      collect_list(Q4_Col22) FILTER (WHERE n <= 10) AS Q4_Col22_10,
      size(array_union(collect_set(Q4_Col3), array(0L))) AS bo_POS_CASH_balance_Q4_Col3_multi_unique_count_75,
      size(array_union(collect_set(Q4_Col3) FILTER (WHERE n <= 10), array(0L))) AS bo_POS_CASH_balance_Q4_Col3_multi_unique_count_76,
      size(array_union(collect_set(Q4_Col1), array(0L))) AS bo_POS_CASH_balance_Q4_Col1_multi_unique_count_77,
      collect_list(Q4_Col23) AS Q4_Col23_100
    FROM (
      SELECT
        t.Q4_Col40 AS id, row_number() OVER (PARTITION BY t.Q4_Col40 ORDER BY h.Q4_Col0 DESC) AS n,
        h.Q4_Col1, h.Q4_Col3, h.Q4_Col21, h.Q4_Col22, h.Q4_Col23, h.Q4_Col199, h.Q4_Col200
      FROM train t JOIN bo_POS_CASH_balance h ON h.Q4_Col2 = t.Q4_Col40 AND h.Q4_Col0 <= t.Q4_Col41)
    WHERE n <= 100
    GROUP BY id)
),
bureau AS (
  SELECT
    id,
    bo_bureau_Q4_Col33_multi_avg_6,
    bo_bureau_Q4_Col35_multi_avg_7,
    bo_bureau_Q4_Col29_multi_avg_8,
    bo_bureau_Q4_Col30_multi_avg_9,
    bo_bureau_Q4_Col34_multi_max_29,
    bo_bureau_Q4_Col36_multi_max_30,
    bo_bureau_Q4_Col29_multi_max_31,
    bo_bureau_Q4_Col30_multi_max_32,
    bo_bureau_Q4_Col31_multi_min_48,
    bo_bureau_Q4_Col29_multi_min_49,
    bo_bureau_Q4_Col30_multi_min_50,
    top3(Q4_Col37_100) AS bo_bureau_Q4_Col37_multi_top3frequency_63,
    top3_numbers(Q4_Col27_10) AS bo_bureau_Q4_Col27_multi_top3frequency_64,
    top3_numbers(Q4_Col38_10) AS bo_bureau_Q4_Col38_multi_top3frequency_65,
    bo_bureau_Q4_Col32_multi_unique_count_78,
    bo_bureau_Q4_Col25_multi_unique_count_79,
    bo_bureau_Q4_Col26_multi_unique_count_80,
    bo_bureau_Q4_Col28_multi_unique_count_81,
    bo_bureau_Q4_Col37_multi_unique_count_82,
    bo_bureau_Q4_Col27_multi_unique_count_83,
    bo_bureau_Q4_Col38_multi_unique_count_84
  FROM (
    SELECT
      id,
      coalesce(sum(Q4_Col33), 0) / (count(Q4_Col33) + 1) AS bo_bureau_Q4_Col33_multi_avg_6,
      coalesce(sum(Q4_Col35), 0) / (count(Q4_Col35) + 1) AS bo_bureau_Q4_Col35_multi_avg_7,
      coalesce(sum(Q4_Col29) FILTER (WHERE n <= 10), 0) / (count(Q4_Col29) FILTER (WHERE n <= 10) + 1) AS bo_bureau_Q4_Col29_multi_avg_8,
      coalesce(sum(Q4_Col30) FILTER (WHERE n <= 10), 0) / (count(Q4_Col30) FILTER (WHERE n <= 10) + 1) AS bo_bureau_Q4_Col30_multi_avg_9,
      greatest(max(Q4_Col34), 0) AS bo_bureau_Q4_Col34_multi_max_29,
      greatest(max(Q4_Col36), 0) AS bo_bureau_Q4_Col36_multi_max_30,
      greatest(max(Q4_Col29) FILTER (WHERE n <= 10), 0) AS bo_bureau_Q4_Col29_multi_max_31,
      greatest(max(Q4_Col30) FILTER (WHERE n <= 10), 0) AS bo_bureau_Q4_Col30_multi_max_32,
      least(min(Q4_Col31) FILTER (WHERE n <= 10), 0) AS bo_bureau_Q4_Col31_multi_min_48,
      least(min(Q4_Col29) FILTER (WHERE n <= 10), 0) AS bo_bureau_Q4_Col29_multi_min_49,
      least(min(Q4_Col30) FILTER (WHERE n <= 10), 0) AS bo_bureau_Q4_Col30_multi_min_50,
      collect_list(Q4_Col37) AS Q4_Col37_100,
      collect_list(Q4_Col27) FILTER (WHERE n <= 10) AS Q4_Col27_10,
      collect_list(Q4_Col38) FILTER (WHERE n <= 10) AS Q4_Col38_10,
      size(array_union(collect_set(Q4_Col32), array(0L))) AS bo_bureau_Q4_Col32_multi_unique_count_78,
      size(array_union(collect_set(Q4_Col25), array(''))) AS bo_bureau_Q4_Col25_multi_unique_count_79,
      size(array_union(collect_set(Q4_Col26), array(''))) AS bo_bureau_Q4_Col26_multi_unique_count_80,
      size(array_union(collect_set(Q4_Col28), array(0L))) AS bo_bureau_Q4_Col28_multi_unique_count_81,
      size(array_union(collect_set(Q4_Col37) FILTER (WHERE n <= 10), array(''))) AS bo_bureau_Q4_Col37_multi_unique_count_82,
      size(array_union(collect_set(Q4_Col27) FILTER (WHERE n <= 10), array(0L))) AS bo_bureau_Q4_Col27_multi_unique_count_83,
      size(array_union(collect_set(Q4_Col38), array(0L))) AS bo_bureau_Q4_Col38_multi_unique_count_84
    FROM (
      SELECT
        t.Q4_Col40 AS id, row_number() OVER (PARTITION BY t.Q4_Col40 ORDER BY h.Q4_Col0 DESC) AS n,
        h.Q4_Col25, h.Q4_Col26, h.Q4_Col27, h.Q4_Col28, h.Q4_Col29, h.Q4_Col30, h.Q4_Col31, h.Q4_Col32,
        h.Q4_Col33, h.Q4_Col34, h.Q4_Col35, h.Q4_Col36, h.Q4_Col37, h.Q4_Col38
      FROM train t JOIN bo_bureau h ON h.Q4_Col2 = t.Q4_Col40 AND h.Q4_Col0 <= t.Q4_Col41)
    WHERE n <= 100
    GROUP BY id)
),
paid AS (
  SELECT
    id,
    bo_installment_payment_Q4_Col198_multi_avg_10,
    bo_installment_payment_Q4_Col195_multi_avg_11,
    bo_installment_payment_Q4_Col193_multi_avg_12,
    bo_installment_payment_Q4_Col197_multi_max_33,
    bo_installment_payment_Q4_Col197_multi_max_34,
    bo_installment_payment_Q4_Col198_multi_max_35,
    bo_installment_payment_Q4_Col198_multi_max_36,
    bo_installment_payment_Q4_Col193_multi_max_37,
    bo_installment_payment_Q4_Col196_multi_min_51,
    bo_installment_payment_Q4_Col195_multi_min_52,
    top3_numbers(Q4_Col194_10) AS bo_installment_payment_Q4_Col194_multi_top3frequency_67,
    bo_installment_payment_Q4_Col194_multi_unique_count_91,
    bo_installment_payment_Q4_Col1_multi_unique_count_92
  FROM (
    SELECT
      id,
      coalesce(sum(Q4_Col198) FILTER (WHERE n <= 10), 0) / (count(Q4_Col198) FILTER (WHERE n <= 10) + 1) AS bo_installment_payment_Q4_Col198_multi_avg_10,
      coalesce(sum(Q4_Col195), 0) / (count(Q4_Col195) + 1) AS bo_installment_payment_Q4_Col195_multi_avg_11,
      coalesce(sum(Q4_Col193) FILTER (WHERE n <= 10), 0) / (count(Q4_Col193) FILTER (WHERE n <= 10) + 1) AS bo_installment_payment_Q4_Col193_multi_avg_12,
      greatest(max(Q4_Col197), 0) AS bo_installment_payment_Q4_Col197_multi_max_33,
      greatest(max(Q4_Col197) FILTER (WHERE n <= 10), 0) AS bo_installment_payment_Q4_Col197_multi_max_34,
      greatest(max(Q4_Col198), 0) AS bo_installment_payment_Q4_Col198_multi_max_35,
      greatest(max(Q4_Col198) FILTER (WHERE n <= 10), 0) AS bo_installment_payment_Q4_Col198_multi_max_36,
      greatest(max(Q4_Col193) FILTER (WHERE n <= 10), 0) AS bo_installment_payment_Q4_Col193_multi_max_37,
      least(min(Q4_Col196), 0) AS bo_installment_payment_Q4_Col196_multi_min_51,
      least(min(Q4_Col195) FILTER (WHERE n <= 10), 0) AS bo_installment_payment_Q4_Col195_multi_min_52,
      collect_list(Q4_Col194) FILTER (WHERE n <= 10) AS Q4_Col194_10,
      size(array_union(collect_set(Q4_Col194), array(0L))) AS bo_installment_payment_Q4_Col194_multi_unique_count_91,
      size(array_union(collect_set(Q4_Col1) FILTER (WHERE n <= 10), array(0L))) AS bo_installment_payment_Q4_Col1_multi_unique_count_92
    FROM (
      SELECT
        t.Q4_Col40 AS id, row_number() OVER (PARTITION BY t.Q4_Col40 ORDER BY h.Q4_Col0 DESC) AS n,
        h.Q4_Col1, h.Q4_Col193, h.Q4_Col194, h.Q4_Col195, h.Q4_Col196, h.Q4_Col197, h.Q4_Col198
      FROM train t JOIN bo_installment_payment h ON h.Q4_Col2 = t.Q4_Col40 AND h.Q4_Col0 <= t.Q4_Col41)
    WHERE n <= 100
    GROUP BY id)
),
-- Ten rows of a profile end at each of its rows; a request has those that end at the newest row before it.
parts AS (
  SELECT
    Q4_Col77, Q4_Col78, Q4_Col79, Q4_Col80, Q4_Col81, Q4_Col0,
    coalesce(sum(Q4_Col47) OVER last_10, 0) / (count(Q4_Col47) OVER last_10 + 1) AS bo_part_Q4_Col47_multi_avg_13,
    coalesce(sum(Q4_Col86) OVER last_10, 0) / (count(Q4_Col86) OVER last_10 + 1) AS bo_part_Q4_Col86_multi_avg_14,
    coalesce(sum(Q4_Col83) OVER last_10, 0) / (count(Q4_Col83) OVER last_10 + 1) AS bo_part_Q4_Col83_multi_avg_15,
    coalesce(sum(Q4_Col87) OVER last_10, 0) / (count(Q4_Col87) OVER last_10 + 1) AS bo_part_Q4_Col87_multi_avg_16,
    greatest(max(Q4_Col45) OVER last_10, 0) AS bo_part_Q4_Col45_multi_max_38,
    greatest(max(Q4_Col82) OVER last_10, 0) AS bo_part_Q4_Col82_multi_max_39,
    least(min(Q4_Col84) OVER last_10, 0) AS bo_part_Q4_Col84_multi_min_53
  FROM bo_part
  WINDOW last_10 AS (
    PARTITION BY Q4_Col77, Q4_Col78, Q4_Col79, Q4_Col80, Q4_Col81 ORDER BY Q4_Col0
    ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)
),
previous AS (
  SELECT
    id,
    bo_previous_applicatio_Q4_Col44_multi_avg_17,
    bo_previous_applicatio_Q4_Col45_multi_avg_18,
    bo_previous_applicatio_Q4_Col47_multi_avg_19,
    bo_previous_applicatio_Q4_Col67_multi_avg_20,
    bo_previous_applicatio_Q4_Col70_multi_avg_21,
    bo_previous_applicatio_Q4_Col71_multi_avg_22,
    bo_previous_applicatio_Q4_Col73_multi_avg_23,
    bo_previous_applicatio_Q4_Col74_multi_avg_24,
    bo_previous_applicatio_Q4_Col75_multi_avg_25,
    bo_previous_applicatio_Q4_Col52_multi_avg_26,
    bo_previous_applicatio_Q4_Col39_multi_max_40,
    bo_previous_applicatio_Q4_Col44_multi_max_41,
    bo_previous_applicatio_Q4_Col45_multi_max_42,
    bo_previous_applicatio_Q4_Col46_multi_max_43,
    bo_previous_applicatio_Q4_Col47_multi_max_44,
    bo_previous_applicatio_Q4_Col72_multi_max_45,
    bo_previous_applicatio_Q4_Col52_multi_max_46,
    bo_previous_applicatio_Q4_Col45_multi_min_54,
    bo_previous_applicatio_Q4_Col47_multi_min_55,
    bo_previous_applicatio_Q4_Col67_multi_min_56,
    bo_previous_applicatio_Q4_Col74_multi_min_57,
    bo_previous_applicatio_Q4_Col52_multi_min_58,
    top3(Q4_Col64_100) AS bo_previous_applicatio_Q4_Col64_multi_top3frequency_68,
    top3(Q4_Col66_100) AS bo_previous_applicatio_Q4_Col66_multi_top3frequency_69,
    top3(Q4_Col66_10) AS bo_previous_applicatio_Q4_Col66_multi_top3frequency_70,
    top3(Q4_Col59_10) AS bo_previous_applicatio_Q4_Col59_multi_top3frequency_71,
    top3(Q4_Col68_10) AS bo_previous_applicatio_Q4_Col68_multi_top3frequency_72,
    top3(Q4_Col69_10) AS bo_previous_applicatio_Q4_Col69_multi_top3frequency_73,
    top3_numbers(Q4_Col65_10) AS bo_previous_applicatio_Q4_Col65_multi_top3frequency_74,
    bo_previous_applicatio_Q4_Col64_multi_unique_count_93,
    bo_previous_applicatio_Q4_Col58_multi_unique_count_94,
    bo_previous_applicatio_Q4_Col56_multi_unique_count_95,
    bo_previous_applicatio_Q4_Col50_multi_unique_count_96,
    bo_previous_applicatio_Q4_Col49_multi_unique_count_97,
    bo_previous_applicatio_Q4_Col55_multi_unique_count_98,
    bo_previous_applicatio_Q4_Col21_multi_unique_count_99,
    bo_previous_applicatio_Q4_Col61_multi_unique_count_100,
    bo_previous_applicatio_Q4_Col57_multi_unique_count_101,
    bo_previous_applicatio_Q4_Col66_multi_unique_count_102,
    bo_previous_applicatio_Q4_Col68_multi_unique_count_103,
    bo_previous_applicatio_Q4_Col51_multi_unique_count_104,
    bo_previous_applicatio_Q4_Col69_multi_unique_count_105,
    bo_previous_applicatio_Q4_Col1_multi_unique_count_106
  FROM (
    SELECT
      id,
      coalesce(sum(Q4_Col44) FILTER (WHERE n <= 10), 0) / (count(Q4_Col44) FILTER (WHERE n <= 10) + 1) AS bo_previous_applicatio_Q4_Col44_multi_avg_17,
      coalesce(sum(Q4_Col45) FILTER (WHERE n <= 10), 0) / (count(Q4_Col45) FILTER (WHERE n <= 10) + 1) AS bo_previous_applicatio_Q4_Col45_multi_avg_18,
      coalesce(sum(Q4_Col47), 0) / (count(Q4_Col47) + 1) AS bo_previous_applicatio_Q4_Col47_multi_avg_19,
      coalesce(sum(Q4_Col67), 0) / (count(Q4_Col67) + 1) AS bo_previous_applicatio_Q4_Col67_multi_avg_20,
      coalesce(sum(Q4_Col70), 0) / (count(Q4_Col70) + 1) AS bo_previous_applicatio_Q4_Col70_multi_avg_21,
      coalesce(sum(Q4_Col71) FILTER (WHERE n <= 10), 0) / (count(Q4_Col71) FILTER (WHERE n <= 10) + 1) AS bo_previous_applicatio_Q4_Col71_multi_avg_22,
      coalesce(sum(Q4_Col73) FILTER (WHERE n <= 10), 0) / (count(Q4_Col73) FILTER (WHERE n <= 10) + 1) AS bo_previous_applicatio_Q4_Col73_multi_avg_23,
      coalesce(sum(Q4_Col74), 0) / (count(Q4_Col74) + 1) AS bo_previous_applicatio_Q4_Col74_multi_avg_24,
      coalesce(sum(Q4_Col75) FILTER (WHERE n <= 10), 0) / (count(Q4_Col75) FILTER (WHERE n <= 10) + 1) AS bo_previous_applicatio_Q4_Col75_multi_avg_25,
      coalesce(sum(Q4_Col52) FILTER (WHERE n <= 10), 0) / (count(Q4_Col52) FILTER (WHERE n <= 10) + 1) AS bo_previous_applicatio_Q4_Col52_multi_avg_26,
      greatest(max(Q4_Col39), 0) AS bo_previous_applicatio_Q4_Col39_multi_max_40,
      greatest(max(Q4_Col44), 0) AS bo_previous_applicatio_Q4_Col44_multi_max_41,
      greatest(max(Q4_Col45), 0) AS bo_previous_applicatio_Q4_Col45_multi_max_42,
      greatest(max(Q4_Col46), 0) AS bo_previous_applicatio_Q4_Col46_multi_max_43,
      greatest(max(Q4_Col47), 0) AS bo_previous_applicatio_Q4_Col47_multi_max_44,
      greatest(max(Q4_Col72), 0) AS bo_previous_applicatio_Q4_Col72_multi_max_45,
      greatest(max(Q4_Col52) FILTER (WHERE n <= 10), 0) AS bo_previous_applicatio_Q4_Col52_multi_max_46,
      least(min(Q4_Col45), 0) AS bo_previous_applicatio_Q4_Col45_multi_min_54,
      least(min(Q4_Col47), 0) AS bo_previous_applicatio_Q4_Col47_multi_min_55,
      least(min(Q4_Col67), 0) AS bo_previous_applicatio_Q4_Col67_multi_min_56,
      least(min(Q4_Col74) FILTER (WHERE n <= 10), 0) AS bo_previous_applicatio_Q4_Col74_multi_min_57,
      least(min(Q4_Col52) FILTER (WHERE n <= 10), 0) AS bo_previous_applicatio_Q4_Col52_multi_min_58,
      collect_list(Q4_Col64) AS Q4_Col64_100,
      collect_list(Q4_Col66) AS Q4_Col66_100,
      collect_list(Q4_Col66) FILTER (WHERE n <= 10) AS Q4_Col66_10,
      collect_list(Q4_Col59) FILTER (WHERE n <= 10) AS Q4_Col59_10,
      collect_list(Q4_Col68) FILTER (WHERE n <= 10) AS Q4_Col68_10,
      collect_list(Q4_Col69) FILTER (WHERE n <= 10) AS Q4_Col69_10,
      collect_list(Q4_Col65) FILTER (WHERE n <= 10) AS Q4_Col65_10,
      size(array_union(collect_set(Q4_Col64), array(''))) AS bo_previous_applicatio_Q4_Col64_multi_unique_count_93,
      size(array_union(collect_set(Q4_Col58), array(''))) AS bo_previous_applicatio_Q4_Col58_multi_unique_count_94,
      size(array_union(collect_set(Q4_Col56), array(0L))) AS bo_previous_applicatio_Q4_Col56_multi_unique_count_95,
      size(array_union(collect_set(Q4_Col50), array(''))) AS bo_previous_applicatio_Q4_Col50_multi_unique_count_96,
      size(array_union(collect_set(Q4_Col49) FILTER (WHERE n <= 10), array(0L))) AS bo_previous_applicatio_Q4_Col49_multi_unique_count_97,
      size(array_union(collect_set(Q4_Col55) FILTER (WHERE n <= 10), array(''))) AS bo_previous_applicatio_Q4_Col55_multi_unique_count_98,
      size(array_union(collect_set(Q4_Col21), array(''))) AS bo_previous_applicatio_Q4_Col21_multi_unique_count_99,
      size(array_union(collect_set(Q4_Col61) FILTER (WHERE n <= 10), array(''))) AS bo_previous_applicatio_Q4_Col61_multi_unique_count_100,
      size(array_union(collect_set(Q4_Col57) FILTER (WHERE n <= 10), array(''))) AS bo_previous_applicatio_Q4_Col57_multi_unique_count_101,
      size(array_union(collect_set(Q4_Col66) FILTER (WHERE n <= 10), array(''))) AS bo_previous_applicatio_Q4_Col66_multi_unique_count_102,
      size(array_union(collect_set(Q4_Col68) FILTER (WHERE n <= 10), array(''))) AS bo_previous_applicatio_Q4_Col68_multi_unique_count_103,
      size(array_union(collect_set(Q4_Col51) FILTER (WHERE n <= 10), array(0L))) AS bo_previous_applicatio_Q4_Col51_multi_unique_count_104,
      size(array_union(collect_set(Q4_Col69), array(''))) AS bo_previous_applicatio_Q4_Col69_multi_unique_count_105,
      size(array_union(collect_set(Q4_Col1), array(0L))) AS bo_previous_applicatio_Q4_Col1_multi_unique_count_106
    FROM (
      SELECT
        t.Q4_Col40 AS id, row_number() OVER (PARTITION BY t.Q4_Col40 ORDER BY h.Q4_Col0 DESC) AS n,
        h.Q4_Col1, h.Q4_Col21, h.Q4_Col39, h.Q4_Col44, h.Q4_Col45, h.Q4_Col46, h.Q4_Col47, h.Q4_Col49,
        h.Q4_Col50, h.Q4_Col51, h.Q4_Col52, h.Q4_Col55, h.Q4_Col56, h.Q4_Col57, h.Q4_Col58, h.Q4_Col59,
        h.Q4_Col61, h.Q4_Col64, h.Q4_Col65, h.Q4_Col66, h.Q4_Col67, h.Q4_Col68, h.Q4_Col69, h.Q4_Col70,
        h.Q4_Col71, h.Q4_Col72, h.Q4_Col73, h.Q4_Col74, h.Q4_Col75
      FROM train t JOIN bo_previous_applicatio h ON h.Q4_Col2 = t.Q4_Col40 AND h.Q4_Col0 <= t.Q4_Col41)
    WHERE n <= 100
    GROUP BY id)
),
balance AS (
  SELECT
    id,
    top3_numbers(Q4_Col3_10) AS bo_bureau_balance_Q4_Col3_multi_top3frequency_66
  FROM (
    SELECT
      id,
      collect_list(Q4_Col3) AS Q4_Col3_10
    FROM (
      SELECT
        t.Q4_Col40 AS id, row_number() OVER (PARTITION BY t.Q4_Col40 ORDER BY h.Q4_Col0 DESC) AS n,
        h.Q4_Col3
      FROM train t JOIN bo_bureau_balance h ON h.Q4_Col2 = t.Q4_Col40 AND h.Q4_Col0 <= t.Q4_Col41)
    WHERE n <= 10
    GROUP BY id)
),
card AS (
  SELECT
    id,
    bo_credit_card_balance_Q4_Col5_multi_unique_count_85,
    bo_credit_card_balance_Q4_Col17_multi_unique_count_86,
    bo_credit_card_balance_Q4_Col17_multi_unique_count_87,
    bo_credit_card_balance_Q4_Col3_multi_unique_count_88,
    bo_credit_card_balance_Q4_Col21_multi_unique_count_89,
    bo_credit_card_balance_Q4_Col1_multi_unique_count_90
  FROM (
    SELECT
      id,
      size(array_union(collect_set(Q4_Col5) FILTER (WHERE n <= 10), array(0L))) AS bo_credit_card_balance_Q4_Col5_multi_unique_count_85,
      size(array_union(collect_set(Q4_Col17), array(0L))) AS bo_credit_card_balance_Q4_Col17_multi_unique_count_86,
      size(array_union(collect_set(Q4_Col17) FILTER (WHERE n <= 10), array(0L))) AS bo_credit_card_balance_Q4_Col17_multi_unique_count_87,
      size(array_union(collect_set(Q4_Col3), array(0L))) AS bo_credit_card_balance_Q4_Col3_multi_unique_count_88,
      size(array_union(collect_set(Q4_Col21), array(''))) AS bo_credit_card_balance_Q4_Col21_multi_unique_count_89,
      size(array_union(collect_set(Q4_Col1) FILTER (WHERE n <= 10), array(0L))) AS bo_credit_card_balance_Q4_Col1_multi_unique_count_90
    FROM (
      SELECT
        t.Q4_Col40 AS id, row_number() OVER (PARTITION BY t.Q4_Col40 ORDER BY h.Q4_Col0 DESC) AS n,
        h.Q4_Col1, h.Q4_Col3, h.Q4_Col5, h.Q4_Col17, h.Q4_Col21
      FROM train t JOIN bo_credit_card_balance h ON h.Q4_Col2 = t.Q4_Col40 AND h.Q4_Col0 <= t.Q4_Col41)
    WHERE n <= 100
    GROUP BY id)
),
requests AS (
  SELECT
    r.*,
    p.bo_part_Q4_Col47_multi_avg_13,
    p.bo_part_Q4_Col86_multi_avg_14,
    p.bo_part_Q4_Col83_multi_avg_15,
    p.bo_part_Q4_Col87_multi_avg_16,
    p.bo_part_Q4_Col45_multi_max_38,
    p.bo_part_Q4_Col82_multi_max_39,
    p.bo_part_Q4_Col84_multi_min_53
  FROM (
    SELECT
      Q4_Col40, Q4_Col41, Q4_Col77, Q4_Col78, Q4_Col79, Q4_Col80, Q4_Col81,
      CASE WHEN Q4_Col43 IS NOT NULL THEN count(*) OVER (
        PARTITION BY Q4_Col78, Q4_Col43 ORDER BY unix_millis(Q4_Col41)
        RANGE BETWEEN 36000000 PRECEDING AND CURRENT ROW) END AS same_10h
    FROM train
  ) r
  LEFT ASOF JOIN parts p MATCH_CONDITION (r.Q4_Col41 >= p.Q4_Col0)
  ON r.Q4_Col77 = p.Q4_Col77 AND r.Q4_Col78 = p.Q4_Col78 AND r.Q4_Col79 = p.Q4_Col79
    AND r.Q4_Col80 = p.Q4_Col80 AND r.Q4_Col81 = p.Q4_Col81
)
-- A LAST JOIN on a unique key is a LEFT JOIN. Nothing reads what the script takes from `action`.
SELECT
  t.Q4_Col40 AS Q4_Col40_1,
  t.Q4_Col41 AS flattenRequest_Q4_Col41_original_0,
  t.Q4_Col40 AS flattenRequest_Q4_Col40_original_1,
  t.Q4_Col39 AS flattenRequest_Q4_Col39_original_107,
  t.Q4_Col45 AS flattenRequest_Q4_Col45_original_108,
  t.Q4_Col47 AS flattenRequest_Q4_Col47_original_109,
  t.Q4_Col187 AS flattenRequest_Q4_Col187_original_110,
  t.Q4_Col186 AS flattenRequest_Q4_Col186_original_111,
  t.Q4_Col189 AS flattenRequest_Q4_Col189_original_112,
  t.Q4_Col190 AS flattenRequest_Q4_Col190_original_113,
  t.Q4_Col188 AS flattenRequest_Q4_Col188_original_114,
  t.Q4_Col191 AS flattenRequest_Q4_Col191_original_115,
  t.Q4_Col114 AS flattenRequest_Q4_Col114_original_116,
  t.Q4_Col142 AS flattenRequest_Q4_Col142_original_117,
  t.Q4_Col128 AS flattenRequest_Q4_Col128_original_118,
  t.Q4_Col115 AS flattenRequest_Q4_Col115_original_119,
  t.Q4_Col143 AS flattenRequest_Q4_Col143_original_120,
  t.Q4_Col129 AS flattenRequest_Q4_Col129_original_121,
  t.Q4_Col90 AS flattenRequest_Q4_Col90_original_122,
  t.Q4_Col105 AS flattenRequest_Q4_Col105_original_123,
  t.Q4_Col80 AS flattenRequest_Q4_Col80_original_124,
  t.Q4_Col118 AS flattenRequest_Q4_Col118_original_125,
  t.Q4_Col146 AS flattenRequest_Q4_Col146_original_126,
  t.Q4_Col132 AS flattenRequest_Q4_Col132_original_127,
  t.Q4_Col81 AS flattenRequest_Q4_Col81_original_128,
  t.Q4_Col97 AS flattenRequest_Q4_Col97_original_129,
  t.Q4_Col165 AS flattenRequest_Q4_Col165_original_130,
  t.Q4_Col96 AS flattenRequest_Q4_Col96_original_131,
  t.Q4_Col162 AS flattenRequest_Q4_Col162_original_132,
  t.Q4_Col164 AS flattenRequest_Q4_Col164_original_133,
  t.Q4_Col119 AS flattenRequest_Q4_Col119_original_134,
  t.Q4_Col147 AS flattenRequest_Q4_Col147_original_135,
  t.Q4_Col133 AS flattenRequest_Q4_Col133_original_136,
  t.Q4_Col160 AS flattenRequest_Q4_Col160_original_137,
  t.Q4_Col120 AS flattenRequest_Q4_Col120_original_138,
  t.Q4_Col148 AS flattenRequest_Q4_Col148_original_139,
  t.Q4_Col134 AS flattenRequest_Q4_Col134_original_140,
  t.Q4_Col82 AS flattenRequest_Q4_Col82_original_141,
  t.Q4_Col83 AS flattenRequest_Q4_Col83_original_142,
  t.Q4_Col84 AS flattenRequest_Q4_Col84_original_143,
  t.Q4_Col102 AS flattenRequest_Q4_Col102_original_144,
  t.Q4_Col177 AS flattenRequest_Q4_Col177_original_145,
  t.Q4_Col178 AS flattenRequest_Q4_Col178_original_146,
  t.Q4_Col180 AS flattenRequest_Q4_Col180_original_147,
  t.Q4_Col182 AS flattenRequest_Q4_Col182_original_148,
  t.Q4_Col183 AS flattenRequest_Q4_Col183_original_149,
  t.Q4_Col166 AS flattenRequest_Q4_Col166_original_150,
  t.Q4_Col184 AS flattenRequest_Q4_Col184_original_151,
  t.Q4_Col185 AS flattenRequest_Q4_Col185_original_152,
  t.Q4_Col167 AS flattenRequest_Q4_Col167_original_153,
  t.Q4_Col169 AS flattenRequest_Q4_Col169_original_154,
  t.Q4_Col170 AS flattenRequest_Q4_Col170_original_155,
  t.Q4_Col172 AS flattenRequest_Q4_Col172_original_156,
  t.Q4_Col104 AS flattenRequest_Q4_Col104_original_157,
  t.Q4_Col100 AS flattenRequest_Q4_Col100_original_158,
  t.Q4_Col88 AS flattenRequest_Q4_Col88_original_159,
  t.Q4_Col89 AS flattenRequest_Q4_Col89_original_160,
  t.Q4_Col103 AS flattenRequest_Q4_Col103_original_161,
  t.Q4_Col101 AS flattenRequest_Q4_Col101_original_162,
  t.Q4_Col121 AS flattenRequest_Q4_Col121_original_163,
  t.Q4_Col149 AS flattenRequest_Q4_Col149_original_164,
  t.Q4_Col135 AS flattenRequest_Q4_Col135_original_165,
  t.Q4_Col122 AS flattenRequest_Q4_Col122_original_166,
  t.Q4_Col150 AS flattenRequest_Q4_Col150_original_167,
  t.Q4_Col136 AS flattenRequest_Q4_Col136_original_168,
  t.Q4_Col156 AS flattenRequest_Q4_Col156_original_169,
  t.Q4_Col49 AS flattenRequest_Q4_Col49_original_170,
  t.Q4_Col157 AS flattenRequest_Q4_Col157_original_171,
  t.Q4_Col123 AS flattenRequest_Q4_Col123_original_172,
  t.Q4_Col151 AS flattenRequest_Q4_Col151_original_173,
  t.Q4_Col137 AS flattenRequest_Q4_Col137_original_174,
  t.Q4_Col113 AS flattenRequest_Q4_Col113_original_175,
  t.Q4_Col124 AS flattenRequest_Q4_Col124_original_176,
  t.Q4_Col152 AS flattenRequest_Q4_Col152_original_177,
  t.Q4_Col138 AS flattenRequest_Q4_Col138_original_178,
  t.Q4_Col125 AS flattenRequest_Q4_Col125_original_179,
  t.Q4_Col153 AS flattenRequest_Q4_Col153_original_180,
  t.Q4_Col139 AS flattenRequest_Q4_Col139_original_181,
  t.Q4_Col43 AS flattenRequest_Q4_Col43_original_182,
  t.Q4_Col78 AS flattenRequest_Q4_Col78_original_183,
  t.Q4_Col92 AS flattenRequest_Q4_Col92_original_184,
  t.Q4_Col93 AS flattenRequest_Q4_Col93_original_185,
  t.Q4_Col91 AS flattenRequest_Q4_Col91_original_186,
  t.Q4_Col59 AS flattenRequest_Q4_Col59_original_187,
  t.Q4_Col126 AS flattenRequest_Q4_Col126_original_188,
  t.Q4_Col154 AS flattenRequest_Q4_Col154_original_189,
  t.Q4_Col140 AS flattenRequest_Q4_Col140_original_190,
  t.Q4_Col127 AS flattenRequest_Q4_Col127_original_191,
  t.Q4_Col155 AS flattenRequest_Q4_Col155_original_192,
  t.Q4_Col141 AS flattenRequest_Q4_Col141_original_193,
  t.Q4_Col161 AS flattenRequest_Q4_Col161_original_194,
  t.Q4_Col163 AS flattenRequest_Q4_Col163_original_195,
  t.Q4_Col79 AS flattenRequest_Q4_Col79_original_196,
  t.Q4_Col77 AS flattenRequest_Q4_Col77_original_197,
  t.Q4_Col98 AS flattenRequest_Q4_Col98_original_198,
  t.Q4_Col94 AS flattenRequest_Q4_Col94_original_199,
  t.Q4_Col106 AS flattenRequest_Q4_Col106_original_200,
  t.Q4_Col107 AS flattenRequest_Q4_Col107_original_201,
  t.Q4_Col111 AS flattenRequest_Q4_Col111_original_202,
  t.Q4_Col112 AS flattenRequest_Q4_Col112_original_203,
  t.Q4_Col108 AS flattenRequest_Q4_Col108_original_204,
  t.Q4_Col109 AS flattenRequest_Q4_Col109_original_205,
  t.Q4_Col158 AS flattenRequest_Q4_Col158_original_206,
  t.Q4_Col159 AS flattenRequest_Q4_Col159_original_207,
  t.Q4_Col48 AS flattenRequest_Q4_Col48_original_208,
  t.Q4_Col116 AS flattenRequest_Q4_Col116_original_209,
  t.Q4_Col144 AS flattenRequest_Q4_Col144_original_210,
  t.Q4_Col130 AS flattenRequest_Q4_Col130_original_211,
  t.Q4_Col117 AS flattenRequest_Q4_Col117_original_212,
  t.Q4_Col145 AS flattenRequest_Q4_Col145_original_213,
  t.Q4_Col131 AS flattenRequest_Q4_Col131_original_214,
  t.Q4_Col45 AS flattenRequest_Q4_Col45_divide_215,
  t.Q4_Col45 / t.Q4_Col39,
  t.Q4_Col39 AS flattenRequest_Q4_Col39_divide_215,
  t.Q4_Col39 AS flattenRequest_Q4_Col39_divide_216,
  t.Q4_Col39 / t.Q4_Col45,
  t.Q4_Col45 AS flattenRequest_Q4_Col45_divide_216,
  t.Q4_Col47 AS flattenRequest_Q4_Col47_divide_217,
  t.Q4_Col47 / t.Q4_Col39,
  t.Q4_Col39 AS flattenRequest_Q4_Col39_divide_217,
  t.Q4_Col39 AS flattenRequest_Q4_Col39_divide_218,
  t.Q4_Col39 / t.Q4_Col47,
  t.Q4_Col47 AS flattenRequest_Q4_Col47_divide_218,
  t.Q4_Col83 AS flattenRequest_Q4_Col83_multiply_219,
  t.Q4_Col83 * t.Q4_Col84,
  t.Q4_Col84 AS flattenRequest_Q4_Col84_multiply_219,
  t.Q4_Col47 AS flattenRequest_Q4_Col47_divide_220,
  t.Q4_Col47 / coalesce(previous.bo_previous_applicatio_Q4_Col58_multi_unique_count_94, 1),
  t.Q4_Col47 AS flattenRequest_Q4_Col47_divide_221,
  t.Q4_Col47 / t.Q4_Col45,
  t.Q4_Col45 AS flattenRequest_Q4_Col45_divide_221,
  t.Q4_Col80 AS flattenRequest_Q4_Col80_combine_222,
  concat(t.Q4_Col80, t.Q4_Col92),
  t.Q4_Col92 AS flattenRequest_Q4_Col92_combine_222,
  t.Q4_Col45 AS flattenRequest_Q4_Col45_divide_223,
  t.Q4_Col45 / t.Q4_Col47,
  t.Q4_Col47 AS flattenRequest_Q4_Col47_divide_223,
  t.Q4_Col159 AS flattenRequest_Q4_Col159_combine_224,
  concat(t.Q4_Col159, coalesce(pos.bo_POS_CASH_balance_Q4_Col23_multi_top3frequency_224, '0,NULL,NULL')),
  t.Q4_Col160 AS flattenRequest_Q4_Col160_combine_225,
  concat(t.Q4_Col160, coalesce(pos.bo_POS_CASH_balance_Q4_Col23_multi_top3frequency_224, '0,NULL,NULL')),
  r.same_10h AS flattenRequest_Q4_Col43_window_count_226,
  t.Q4_Col83 AS flattenRequest_Q4_Col83_divide_227,
  t.Q4_Col83 / coalesce(previous.bo_previous_applicatio_Q4_Col21_multi_unique_count_99, 1),
  t.Q4_Col157 AS flattenRequest_Q4_Col157_combine_228,
  concat(t.Q4_Col157, coalesce(pos.bo_POS_CASH_balance_Q4_Col23_multi_top3frequency_224, '0,NULL,NULL')),
  t.Q4_Col92 AS flattenRequest_Q4_Col92_combine_229,
  concat(t.Q4_Col92, coalesce(pos.bo_POS_CASH_balance_Q4_Col23_multi_top3frequency_224, '0,NULL,NULL')),
  t.Q4_Col180 AS flattenRequest_Q4_Col180_combine_231,
  t.Q4_Col40 AS Q4_Col40_4,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col199_multi_avg_3, 0D) AS bo_POS_CASH_balance_Q4_Col199_multi_avg_3,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col199_multi_avg_4, 0D) AS bo_POS_CASH_balance_Q4_Col199_multi_avg_4,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col200_multi_avg_5, 0D) AS bo_POS_CASH_balance_Q4_Col200_multi_avg_5,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col199_multi_max_27, 0D) AS bo_POS_CASH_balance_Q4_Col199_multi_max_27,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col200_multi_max_28, 0D) AS bo_POS_CASH_balance_Q4_Col200_multi_max_28,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col200_multi_min_47, 0D) AS bo_POS_CASH_balance_Q4_Col200_multi_min_47,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col3_multi_top3frequency_59, '0,NULL,NULL') AS bo_POS_CASH_balance_Q4_Col3_multi_top3frequency_59,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col21_multi_top3frequency_60, ',NULL,NULL') AS bo_POS_CASH_balance_Q4_Col21_multi_top3frequency_60,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col22_multi_top3frequency_61, '0,NULL,NULL') AS bo_POS_CASH_balance_Q4_Col22_multi_top3frequency_61,
  concat(coalesce(pos.bo_POS_CASH_balance_Q4_Col22_multi_top3frequency_61, '0,NULL,NULL'), t.Q4_Col180),
  coalesce(pos.bo_POS_CASH_balance_Q4_Col22_multi_top3frequency_62, '0,NULL,NULL') AS bo_POS_CASH_balance_Q4_Col22_multi_top3frequency_62,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col3_multi_unique_count_75, 1) AS bo_POS_CASH_balance_Q4_Col3_multi_unique_count_75,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col3_multi_unique_count_76, 1) AS bo_POS_CASH_balance_Q4_Col3_multi_unique_count_76,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col1_multi_unique_count_77, 1) AS bo_POS_CASH_balance_Q4_Col1_multi_unique_count_77,
  coalesce(pos.bo_POS_CASH_balance_Q4_Col23_multi_top3frequency_224, '0,NULL,NULL') AS bo_POS_CASH_balance_Q4_Col23_multi_top3frequency_224,
  t.Q4_Col40 AS Q4_Col40_7,
  coalesce(bureau.bo_bureau_Q4_Col33_multi_avg_6, 0D) AS bo_bureau_Q4_Col33_multi_avg_6,
  coalesce(bureau.bo_bureau_Q4_Col35_multi_avg_7, 0D) AS bo_bureau_Q4_Col35_multi_avg_7,
  coalesce(bureau.bo_bureau_Q4_Col29_multi_avg_8, 0D) AS bo_bureau_Q4_Col29_multi_avg_8,
  coalesce(bureau.bo_bureau_Q4_Col30_multi_avg_9, 0D) AS bo_bureau_Q4_Col30_multi_avg_9,
  coalesce(bureau.bo_bureau_Q4_Col34_multi_max_29, 0D) AS bo_bureau_Q4_Col34_multi_max_29,
  coalesce(bureau.bo_bureau_Q4_Col36_multi_max_30, 0D) AS bo_bureau_Q4_Col36_multi_max_30,
  coalesce(bureau.bo_bureau_Q4_Col29_multi_max_31, 0D) AS bo_bureau_Q4_Col29_multi_max_31,
  coalesce(bureau.bo_bureau_Q4_Col30_multi_max_32, 0D) AS bo_bureau_Q4_Col30_multi_max_32,
  coalesce(bureau.bo_bureau_Q4_Col30_multi_max_32, 0D) / coalesce(bureau.bo_bureau_Q4_Col30_multi_avg_9, 0D),
  coalesce(bureau.bo_bureau_Q4_Col31_multi_min_48, 0D) AS bo_bureau_Q4_Col31_multi_min_48,
  coalesce(bureau.bo_bureau_Q4_Col29_multi_min_49, 0D) AS bo_bureau_Q4_Col29_multi_min_49,
  coalesce(bureau.bo_bureau_Q4_Col30_multi_min_50, 0D) AS bo_bureau_Q4_Col30_multi_min_50,
  coalesce(bureau.bo_bureau_Q4_Col37_multi_top3frequency_63, ',NULL,NULL') AS bo_bureau_Q4_Col37_multi_top3frequency_63,
  coalesce(bureau.bo_bureau_Q4_Col27_multi_top3frequency_64, '0,NULL,NULL') AS bo_bureau_Q4_Col27_multi_top3frequency_64,
  coalesce(bureau.bo_bureau_Q4_Col38_multi_top3frequency_65, '0,NULL,NULL') AS bo_bureau_Q4_Col38_multi_top3frequency_65,
  coalesce(bureau.bo_bureau_Q4_Col32_multi_unique_count_78, 1) AS bo_bureau_Q4_Col32_multi_unique_count_78,
  coalesce(bureau.bo_bureau_Q4_Col25_multi_unique_count_79, 1) AS bo_bureau_Q4_Col25_multi_unique_count_79,
  coalesce(bureau.bo_bureau_Q4_Col26_multi_unique_count_80, 1) AS bo_bureau_Q4_Col26_multi_unique_count_80,
  coalesce(bureau.bo_bureau_Q4_Col28_multi_unique_count_81, 1) AS bo_bureau_Q4_Col28_multi_unique_count_81,
  coalesce(bureau.bo_bureau_Q4_Col37_multi_unique_count_82, 1) AS bo_bureau_Q4_Col37_multi_unique_count_82,
  coalesce(bureau.bo_bureau_Q4_Col27_multi_unique_count_83, 1) AS bo_bureau_Q4_Col27_multi_unique_count_83,
  coalesce(bureau.bo_bureau_Q4_Col38_multi_unique_count_84, 1) AS bo_bureau_Q4_Col38_multi_unique_count_84,
  t.Q4_Col40 AS Q4_Col40_11,
  coalesce(paid.bo_installment_payment_Q4_Col198_multi_avg_10, 0D) AS bo_installment_payment_Q4_Col198_multi_avg_10,
  coalesce(paid.bo_installment_payment_Q4_Col195_multi_avg_11, 0D) AS bo_installment_payment_Q4_Col195_multi_avg_11,
  coalesce(paid.bo_installment_payment_Q4_Col193_multi_avg_12, 0D) AS bo_installment_payment_Q4_Col193_multi_avg_12,
  coalesce(paid.bo_installment_payment_Q4_Col197_multi_max_33, 0D) AS bo_installment_payment_Q4_Col197_multi_max_33,
  coalesce(paid.bo_installment_payment_Q4_Col197_multi_max_34, 0D) AS bo_installment_payment_Q4_Col197_multi_max_34,
  coalesce(paid.bo_installment_payment_Q4_Col198_multi_max_35, 0D) AS bo_installment_payment_Q4_Col198_multi_max_35,
  coalesce(paid.bo_installment_payment_Q4_Col198_multi_max_36, 0D) AS bo_installment_payment_Q4_Col198_multi_max_36,
  coalesce(paid.bo_installment_payment_Q4_Col193_multi_max_37, 0D) AS bo_installment_payment_Q4_Col193_multi_max_37,
  coalesce(paid.bo_installment_payment_Q4_Col196_multi_min_51, 0D) AS bo_installment_payment_Q4_Col196_multi_min_51,
  coalesce(paid.bo_installment_payment_Q4_Col195_multi_min_52, 0D) AS bo_installment_payment_Q4_Col195_multi_min_52,
  coalesce(paid.bo_installment_payment_Q4_Col194_multi_top3frequency_67, '0,NULL,NULL') AS bo_installment_payment_Q4_Col194_multi_top3frequency_67,
  coalesce(paid.bo_installment_payment_Q4_Col194_multi_unique_count_91, 1) AS bo_installment_payment_Q4_Col194_multi_unique_count_91,
  coalesce(paid.bo_installment_payment_Q4_Col1_multi_unique_count_92, 1) AS bo_installment_payment_Q4_Col1_multi_unique_count_92,
  t.Q4_Col40 AS Q4_Col40_14,
  coalesce(r.bo_part_Q4_Col47_multi_avg_13, 0D) AS bo_part_Q4_Col47_multi_avg_13,
  coalesce(r.bo_part_Q4_Col86_multi_avg_14, 0D) AS bo_part_Q4_Col86_multi_avg_14,
  coalesce(r.bo_part_Q4_Col83_multi_avg_15, 0D) AS bo_part_Q4_Col83_multi_avg_15,
  coalesce(r.bo_part_Q4_Col87_multi_avg_16, 0D) AS bo_part_Q4_Col87_multi_avg_16,
  coalesce(r.bo_part_Q4_Col45_multi_max_38, 0D) AS bo_part_Q4_Col45_multi_max_38,
  coalesce(r.bo_part_Q4_Col82_multi_max_39, 0D) AS bo_part_Q4_Col82_multi_max_39,
  coalesce(r.bo_part_Q4_Col84_multi_min_53, 0D) AS bo_part_Q4_Col84_multi_min_53,
  t.Q4_Col40 AS Q4_Col40_18,
  coalesce(previous.bo_previous_applicatio_Q4_Col44_multi_avg_17, 0D) AS bo_previous_applicatio_Q4_Col44_multi_avg_17,
  coalesce(previous.bo_previous_applicatio_Q4_Col45_multi_avg_18, 0D) AS bo_previous_applicatio_Q4_Col45_multi_avg_18,
  coalesce(previous.bo_previous_applicatio_Q4_Col47_multi_avg_19, 0D) AS bo_previous_applicatio_Q4_Col47_multi_avg_19,
  coalesce(previous.bo_previous_applicatio_Q4_Col67_multi_avg_20, 0D) AS bo_previous_applicatio_Q4_Col67_multi_avg_20,
  coalesce(previous.bo_previous_applicatio_Q4_Col70_multi_avg_21, 0D) AS bo_previous_applicatio_Q4_Col70_multi_avg_21,
  coalesce(previous.bo_previous_applicatio_Q4_Col71_multi_avg_22, 0D) AS bo_previous_applicatio_Q4_Col71_multi_avg_22,
  coalesce(previous.bo_previous_applicatio_Q4_Col73_multi_avg_23, 0D) AS bo_previous_applicatio_Q4_Col73_multi_avg_23,
  coalesce(previous.bo_previous_applicatio_Q4_Col74_multi_avg_24, 0D) AS bo_previous_applicatio_Q4_Col74_multi_avg_24,
  coalesce(previous.bo_previous_applicatio_Q4_Col75_multi_avg_25, 0D) AS bo_previous_applicatio_Q4_Col75_multi_avg_25,
  coalesce(previous.bo_previous_applicatio_Q4_Col52_multi_avg_26, 0D) AS bo_previous_applicatio_Q4_Col52_multi_avg_26,
  coalesce(previous.bo_previous_applicatio_Q4_Col39_multi_max_40, 0D) AS bo_previous_applicatio_Q4_Col39_multi_max_40,
  coalesce(previous.bo_previous_applicatio_Q4_Col44_multi_max_41, 0D) AS bo_previous_applicatio_Q4_Col44_multi_max_41,
  coalesce(previous.bo_previous_applicatio_Q4_Col45_multi_max_42, 0D) AS bo_previous_applicatio_Q4_Col45_multi_max_42,
  coalesce(previous.bo_previous_applicatio_Q4_Col46_multi_max_43, 0D) AS bo_previous_applicatio_Q4_Col46_multi_max_43,
  coalesce(previous.bo_previous_applicatio_Q4_Col47_multi_max_44, 0D) AS bo_previous_applicatio_Q4_Col47_multi_max_44,
  coalesce(previous.bo_previous_applicatio_Q4_Col72_multi_max_45, 0D) AS bo_previous_applicatio_Q4_Col72_multi_max_45,
  coalesce(previous.bo_previous_applicatio_Q4_Col52_multi_max_46, 0D) AS bo_previous_applicatio_Q4_Col52_multi_max_46,
  coalesce(previous.bo_previous_applicatio_Q4_Col45_multi_min_54, 0D) AS bo_previous_applicatio_Q4_Col45_multi_min_54,
  coalesce(previous.bo_previous_applicatio_Q4_Col47_multi_min_55, 0D) AS bo_previous_applicatio_Q4_Col47_multi_min_55,
  coalesce(previous.bo_previous_applicatio_Q4_Col67_multi_min_56, 0D) AS bo_previous_applicatio_Q4_Col67_multi_min_56,
  coalesce(previous.bo_previous_applicatio_Q4_Col74_multi_min_57, 0D) AS bo_previous_applicatio_Q4_Col74_multi_min_57,
  coalesce(previous.bo_previous_applicatio_Q4_Col52_multi_min_58, 0D) AS bo_previous_applicatio_Q4_Col52_multi_min_58,
  coalesce(previous.bo_previous_applicatio_Q4_Col64_multi_top3frequency_68, ',NULL,NULL') AS bo_previous_applicatio_Q4_Col64_multi_top3frequency_68,
  coalesce(previous.bo_previous_applicatio_Q4_Col66_multi_top3frequency_69, ',NULL,NULL') AS bo_previous_applicatio_Q4_Col66_multi_top3frequency_69,
  coalesce(previous.bo_previous_applicatio_Q4_Col66_multi_top3frequency_70, ',NULL,NULL') AS bo_previous_applicatio_Q4_Col66_multi_top3frequency_70,
  coalesce(previous.bo_previous_applicatio_Q4_Col59_multi_top3frequency_71, ',NULL,NULL') AS bo_previous_applicatio_Q4_Col59_multi_top3frequency_71,
  coalesce(previous.bo_previous_applicatio_Q4_Col68_multi_top3frequency_72, ',NULL,NULL') AS bo_previous_applicatio_Q4_Col68_multi_top3frequency_72,
  coalesce(previous.bo_previous_applicatio_Q4_Col69_multi_top3frequency_73, ',NULL,NULL') AS bo_previous_applicatio_Q4_Col69_multi_top3frequency_73,
  coalesce(previous.bo_previous_applicatio_Q4_Col65_multi_top3frequency_74, '0,NULL,NULL') AS bo_previous_applicatio_Q4_Col65_multi_top3frequency_74,
  coalesce(previous.bo_previous_applicatio_Q4_Col64_multi_unique_count_93, 1) AS bo_previous_applicatio_Q4_Col64_multi_unique_count_93,
  coalesce(previous.bo_previous_applicatio_Q4_Col58_multi_unique_count_94, 1) AS bo_previous_applicatio_Q4_Col58_multi_unique_count_94,
  coalesce(previous.bo_previous_applicatio_Q4_Col56_multi_unique_count_95, 1) AS bo_previous_applicatio_Q4_Col56_multi_unique_count_95,
  coalesce(previous.bo_previous_applicatio_Q4_Col50_multi_unique_count_96, 1) AS bo_previous_applicatio_Q4_Col50_multi_unique_count_96,
  coalesce(previous.bo_previous_applicatio_Q4_Col49_multi_unique_count_97, 1) AS bo_previous_applicatio_Q4_Col49_multi_unique_count_97,
  coalesce(previous.bo_previous_applicatio_Q4_Col55_multi_unique_count_98, 1) AS bo_previous_applicatio_Q4_Col55_multi_unique_count_98,
  coalesce(previous.bo_previous_applicatio_Q4_Col21_multi_unique_count_99, 1) AS bo_previous_applicatio_Q4_Col21_multi_unique_count_99,
  coalesce(previous.bo_previous_applicatio_Q4_Col61_multi_unique_count_100, 1) AS bo_previous_applicatio_Q4_Col61_multi_unique_count_100,
  coalesce(previous.bo_previous_applicatio_Q4_Col57_multi_unique_count_101, 1) AS bo_previous_applicatio_Q4_Col57_multi_unique_count_101,
  coalesce(previous.bo_previous_applicatio_Q4_Col66_multi_unique_count_102, 1) AS bo_previous_applicatio_Q4_Col66_multi_unique_count_102,
  coalesce(previous.bo_previous_applicatio_Q4_Col68_multi_unique_count_103, 1) AS bo_previous_applicatio_Q4_Col68_multi_unique_count_103,
  coalesce(previous.bo_previous_applicatio_Q4_Col51_multi_unique_count_104, 1) AS bo_previous_applicatio_Q4_Col51_multi_unique_count_104,
  coalesce(previous.bo_previous_applicatio_Q4_Col69_multi_unique_count_105, 1) AS bo_previous_applicatio_Q4_Col69_multi_unique_count_105,
  coalesce(previous.bo_previous_applicatio_Q4_Col1_multi_unique_count_106, 1) AS bo_previous_applicatio_Q4_Col1_multi_unique_count_106,
  t.Q4_Col40 AS Q4_Col40_67,
  coalesce(balance.bo_bureau_balance_Q4_Col3_multi_top3frequency_66, '0,NULL,NULL') AS bo_bureau_balance_Q4_Col3_multi_top3frequency_66,
  t.Q4_Col40 AS Q4_Col40_86,
  coalesce(card.bo_credit_card_balance_Q4_Col5_multi_unique_count_85, 1) AS bo_credit_card_balance_Q4_Col5_multi_unique_count_85,
  coalesce(card.bo_credit_card_balance_Q4_Col17_multi_unique_count_86, 1) AS bo_credit_card_balance_Q4_Col17_multi_unique_count_86,
  coalesce(card.bo_credit_card_balance_Q4_Col17_multi_unique_count_87, 1) AS bo_credit_card_balance_Q4_Col17_multi_unique_count_87,
  coalesce(card.bo_credit_card_balance_Q4_Col3_multi_unique_count_88, 1) AS bo_credit_card_balance_Q4_Col3_multi_unique_count_88,
  coalesce(card.bo_credit_card_balance_Q4_Col21_multi_unique_count_89, 1) AS bo_credit_card_balance_Q4_Col21_multi_unique_count_89,
  coalesce(card.bo_credit_card_balance_Q4_Col1_multi_unique_count_90, 1) AS bo_credit_card_balance_Q4_Col1_multi_unique_count_90
FROM train t
JOIN requests r ON t.Q4_Col40 = r.Q4_Col40
LEFT JOIN pos ON t.Q4_Col40 = pos.id
LEFT JOIN bureau ON t.Q4_Col40 = bureau.id
LEFT JOIN paid ON t.Q4_Col40 = paid.id
LEFT JOIN previous ON t.Q4_Col40 = previous.id
LEFT JOIN balance ON t.Q4_Col40 = balance.id
LEFT JOIN card ON t.Q4_Col40 = card.id
