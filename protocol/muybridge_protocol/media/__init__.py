"""What a picture, video or sound is, read from its headers. Bytes in, facts out."""
