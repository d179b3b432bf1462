"""People's own data: the estimator, and discovering, predicting and continuing on files."""
