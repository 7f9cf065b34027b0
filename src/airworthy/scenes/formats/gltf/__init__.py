"""glTF 2.0, text and binary: what the reader and the writer of `scenes.formats` rest on."""
