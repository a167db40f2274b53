"""Red-line: the search for the highest load that meets an objective."""
