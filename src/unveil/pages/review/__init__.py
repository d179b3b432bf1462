"""`unveil review RUN`: a local web page on which people name, merge, split and move the classes of a run."""
