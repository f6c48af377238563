//! Header views, checksums and segmentation.
