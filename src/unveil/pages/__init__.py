"""Pages that people look at: the report and the review page."""
