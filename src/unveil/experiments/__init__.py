"""The paper's tables and figures as commands: `unveil paper table4 --data cifar10`."""
