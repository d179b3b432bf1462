"""`unveil report RUN`: one HTML file that shows a discovery."""
