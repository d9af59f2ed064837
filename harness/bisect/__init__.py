"""The commit of a checkout from which on a case fails."""
