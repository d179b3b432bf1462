"""Items to vectors: pretrained and built-in encoders, stored embeddings, scaling."""
