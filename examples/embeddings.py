"""Discover classes among vectors: `python examples/embeddings.py`, or with your own `embeddings.npy labels.txt`.

Labels are a line for each row, empty or -1 where nobody knows. Without files it uses scikit-learn's handwritten digits:
0-4 are known, the other five are to be found.
"""

import sys
from pathlib import Path

import numpy as np

from unveil import NovelClassDiscovery
from unveil.metrics import clustering_accuracy

if len(sys.argv) == 3:
    X = np.load(sys.argv[1], mmap_mode="r")
    y = np.array(Path(sys.argv[2]).read_text().splitlines(), dtype=object)
    truth = None
else:
    from sklearn.datasets import load_digits

    X, truth = load_digits(return_X_y=True)
    y = np.where(truth < 5, truth, -1)

discovery = NovelClassDiscovery(random_state=0).fit(X, y)
if discovery.classes_estimate_ is not None:
    print(discovery.classes_estimate_.sentence())
print(discovery.choice_)
print(discovery.estimate_accuracy()["sentence"])
for row in discovery.get_class_info().to_dict("records"):
    print(f"{row['label']!s:>10}  {row['kind']:5}  {row['size']:5} items  typical rows {row['representatives']}")
if truth is not None:
    novel = truth >= 5
    found, plain = (
        clustering_accuracy(truth[novel], labels[novel]) for labels in (discovery.labels_, discovery.kmeans_labels_)
    )
    print(f"accuracy on the novel digits: {found:.3f} (k-means {plain:.3f})")
discovery.save("runs/embeddings-example", X)
