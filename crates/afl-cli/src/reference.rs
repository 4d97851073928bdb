//! The page `docs/cli.md`, written from the definitions of the command line.
