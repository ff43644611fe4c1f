"""Starting the programs under test, and their peers, for every tier. Standard library only."""
