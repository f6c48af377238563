//! Workers, wheel, clocks, rings and fidelity.
