//! Records: one JSON object a line.
