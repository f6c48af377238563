//! Scenario file to checked plan.
