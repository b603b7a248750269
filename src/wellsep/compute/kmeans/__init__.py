"""k-means: prepared points, starts, Lloyd's loop, nearest centres, the search, medoids."""
