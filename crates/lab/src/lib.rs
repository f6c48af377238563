//! Test hosts in namespaces, and traffic between them.
