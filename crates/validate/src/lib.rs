//! The papers' tables and figures, printed beside what Longwire itself measures.
#![forbid(unsafe_code)]
