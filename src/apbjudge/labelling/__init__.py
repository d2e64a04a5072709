"""A local page on which humans label items: questions, queue, server and the file of labels."""
