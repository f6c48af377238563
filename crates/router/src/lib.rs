//! Bridges, and later routers.
