"""A slice: two revisions of a source compared, and the first of many that behaves otherwise found."""
