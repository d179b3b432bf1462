"""Discovery on own data: the estimator, the number of classes, rehearsals and forecast, the predictor."""
