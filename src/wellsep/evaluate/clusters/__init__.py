"""What is in a cluster: objects, features, rules, the tree of resolutions."""
