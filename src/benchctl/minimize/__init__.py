"""The smallest schedule that still shows an effect: delta debugging over forks."""
