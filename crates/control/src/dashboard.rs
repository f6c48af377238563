//! The files of the dashboard, compiled into the binary.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// A file: its path, media type and contents.
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
    "/style.css" "style.css" "text/css; charset=utf-8",
    "/icon.svg" "icon.svg" "image/svg+xml",
    "/theme.js" "theme.js" "text/javascript; charset=utf-8",
    "/app.js" "app.js" "text/javascript; charset=utf-8",
    "/api.js" "api.js" "text/javascript; charset=utf-8",
    "/charts.js" "charts.js" "text/javascript; charset=utf-8",
    "/dom.js" "dom.js" "text/javascript; charset=utf-8",
    "/field.js" "field.js" "text/javascript; charset=utf-8",
    "/format.js" "format.js" "text/javascript; charset=utf-8",
    "/history.js" "history.js" "text/javascript; charset=utf-8",
    "/kinds.js" "kinds.js" "text/javascript; charset=utf-8",
    "/objects.js" "objects.js" "text/javascript; charset=utf-8",
    "/panel.js" "panel.js" "text/javascript; charset=utf-8",
    "/routers.js" "routers.js" "text/javascript; charset=utf-8",
    "/scales.js" "scales.js" "text/javascript; charset=utf-8",
    "/screen.js" "screen.js" "text/javascript; charset=utf-8",
    "/timeline.js" "timeline.js" "text/javascript; charset=utf-8",
    "/token.js" "token.js" "text/javascript; charset=utf-8",
    "/topology.js" "topology.js" "text/javascript; charset=utf-8",
    "/vendor/uPlot.iife.min.js" "vendor/uPlot.iife.min.js" "text/javascript; charset=utf-8",
    "/vendor/uPlot.min.css" "vendor/uPlot.min.css" "text/css; charset=utf-8",
    "/vendor/LICENSE.uplot" "vendor/LICENSE.uplot" "text/plain; charset=utf-8",
};

/// The files, each at its path.
pub(crate) fn router() -> Router {
    FILES.iter().fold(Router::new(), |router, file| router.route(file.path, get(move || sent(file))))
}

async fn sent(file: &'static File) -> Response {
    // They change with the version, and are cheap to send.
    let headers = [(header::CONTENT_TYPE, file.kind), (header::CACHE_CONTROL, "no-cache")];
    (headers, file.bytes).into_response()
}
