"""Early answers of windows of rows: COUNT, SUM and AVG of FROM rows before their windows are complete, with bounds."""
