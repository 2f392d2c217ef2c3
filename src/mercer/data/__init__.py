"""Data sets: arrays, data frames, sparse matrices and lists of objects, validated once.

A data set is a sequence of n points. `Points` keeps the raw objects and everything that was computed from them; columns
of frames are read as numbers, dates, categories, texts or sets of tokens; missing values stay missing. No other folder
asks which library a frame is from, or when a value is missing.
"""
