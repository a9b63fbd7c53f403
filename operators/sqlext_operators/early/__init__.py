"""Early answers: COUNT, SUM and AVG of a window join before all rows have arrived, with bounds."""
