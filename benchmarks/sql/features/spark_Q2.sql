-- A LAST JOIN on a unique key is a LEFT JOIN. The script joins train to itself by its unique date: the same row.
SELECT
  t.date AS date_1,
  t.date AS train_date_original_0,
  t.wp7 AS train_wp7_original_2,
  t.wp1 AS train_wp1_original_32,
  t.wp2 AS train_wp2_original_33,
  t.wp3 AS train_wp3_original_34,
  t.wp4 AS train_wp4_original_35,
  t.wp5 AS train_wp5_original_36,
  t.wp6 AS train_wp6_original_37,
  ln(t.wp6) AS train_wp6_log_38,
  ln(t.wp3) AS train_wp3_log_39,
  dayofweek(t.date) AS train_date_dayofweek_40,
  hour(t.date) AS train_date_hourofday_41,
  CASE WHEN 1 < dayofweek(t.date) AND dayofweek(t.date) < 7 THEN 1 ELSE 0 END AS train_date_isweekday_42,
  ln(t.wp2) AS train_wp2_log_43,
  t.date AS date_3,
  w1.hors AS windforecasts_wf1_hors_multi_direct_3,
  w1.u AS windforecasts_wf1_u_multi_direct_4,
  w1.v AS windforecasts_wf1_v_multi_direct_5,
  w1.wd AS windforecasts_wf1_wd_multi_direct_6,
  w1.ws AS windforecasts_wf1_ws_multi_direct_7,
  w2.u AS windforecasts_wf2_u_multi_direct_8,
  w2.v AS windforecasts_wf2_v_multi_direct_9,
  w2.wd AS windforecasts_wf2_wd_multi_direct_10,
  w2.ws AS windforecasts_wf2_ws_multi_direct_11,
  w3.u AS windforecasts_wf3_u_multi_direct_12,
  w3.v AS windforecasts_wf3_v_multi_direct_13,
  w3.wd AS windforecasts_wf3_wd_multi_direct_14,
  w3.ws AS windforecasts_wf3_ws_multi_direct_15,
  w4.u AS windforecasts_wf4_u_multi_direct_16,
  w4.v AS windforecasts_wf4_v_multi_direct_17,
  w4.wd AS windforecasts_wf4_wd_multi_direct_18,
  w4.ws AS windforecasts_wf4_ws_multi_direct_19,
  w5.u AS windforecasts_wf5_u_multi_direct_20,
  w5.v AS windforecasts_wf5_v_multi_direct_21,
  w5.wd AS windforecasts_wf5_wd_multi_direct_22,
  w5.ws AS windforecasts_wf5_ws_multi_direct_23,
  w6.u AS windforecasts_wf6_u_multi_direct_24,
  w6.v AS windforecasts_wf6_v_multi_direct_25,
  w6.wd AS windforecasts_wf6_wd_multi_direct_26,
  w6.ws AS windforecasts_wf6_ws_multi_direct_27,
  w7.u AS windforecasts_wf7_u_multi_direct_28,
  w7.v AS windforecasts_wf7_v_multi_direct_29,
  w7.wd AS windforecasts_wf7_wd_multi_direct_30,
  w7.ws AS windforecasts_wf7_ws_multi_direct_31
FROM train t
LEFT JOIN windforecasts_wf1 w1 ON t.date = w1.date
LEFT JOIN windforecasts_wf2 w2 ON t.date = w2.date
LEFT JOIN windforecasts_wf3 w3 ON t.date = w3.date
LEFT JOIN windforecasts_wf4 w4 ON t.date = w4.date
LEFT JOIN windforecasts_wf5 w5 ON t.date = w5.date
LEFT JOIN windforecasts_wf6 w6 ON t.date = w6.date
LEFT JOIN windforecasts_wf7 w7 ON t.date = w7.date
