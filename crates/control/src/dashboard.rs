//! The files of the dashboard, which are part of the binary.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// A file: its path, its media type, and what is in it.
struct File {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($path:literal $name:literal $kind:literal,)+) => {
        &[$(File {
            path: $path,
            kind: $kind,
            bytes: include_bytes!(concat!("../../../dashboard/", $name)),
        },)+]
    };
}

const FILES: &[File] = files! {
    "/" "index.html" "text/html; charset=utf-8",
};

/// The files, each at its path.
pub(crate) fn router() -> Router {
    FILES.iter().fold(Router::new(), |router, file| router.route(file.path, get(move || sent(file))))
}

async fn sent(file: &'static File) -> Response {
    // They change with the version, and cost nothing.
    let headers = [(header::CONTENT_TYPE, file.kind), (header::CACHE_CONTROL, "no-cache")];
    (headers, file.bytes).into_response()
}
