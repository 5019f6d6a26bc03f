"""UGC-VideoCap: captions rated against human ones, with sound."""
