//! pcap-filter expressions: read from text, compiled, evaluated on frames.
#![forbid(unsafe_code)]
