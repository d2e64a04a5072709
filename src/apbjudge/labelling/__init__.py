"""A local page where humans label items: questions, queue, server and the file of labels."""
