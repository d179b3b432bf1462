"""Discover classes among the rows of a table: `python examples/tabular.py`.

Scikit-learn's wines: two cultivars are known, the third is to be found. Columns have different units; that they are
standardized is found out from the known classes, or because there are so few of them.
"""

import numpy as np
from sklearn.datasets import load_wine

from unveil import NovelClassDiscovery
from unveil.metrics import clustering_accuracy

wine = load_wine()
names = np.array(["Barolo", "Grignolino", None], dtype=object)  # nobody has named the third
discovery = NovelClassDiscovery(n_novel=1, known_in_unlabeled=True, steps=200, random_state=0)
labels = names[wine.target]
labels[::3] = None  # and a third of the others has lost its label
discovery.fit(wine.data, labels)

hidden = np.array([label is None for label in labels])
accuracy = clustering_accuracy(wine.target[hidden], discovery.labels_[hidden].astype(str))
print(discovery.choice_)
print(f"{hidden.sum()} unlabeled wines, {accuracy:.3f} of them in the right class")
for row in discovery.get_class_info().to_dict("records"):
    print(f"{row['label']:>12}  {row['kind']:5}  {row['size']:3} wines, confidence {row['confidence']:.2f}")
