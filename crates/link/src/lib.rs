//! The emulated link, stage by stage in packet order.
