"""Folders and small files on any file system, and what may be damaged or forged in them."""
