//! The wall, and the screens it is shown on.

use super::*;

pub fn wall(eye: &Eye, hostile: &str) -> WallPage {
    let screen = format!("hall-2{hostile}");
    WallPage::new(shell(eye, hostile), eye, (1, &screen), &snapshot(hostile), std::time::Duration::from_secs(5))
}

pub fn code(eye: &Eye, hostile: &str) -> CodePage {
    CodePage { s: shell(eye, hostile), problem: eye.lang.t("wall.code_wrong").to_owned() }
}

pub fn screens(eye: &Eye, hostile: &str) -> ScreensPage {
    let screen = |id: i64, is_open: bool, revoked_at: Option<i64>| Screen {
        id,
        name: format!("hall-{id}{hostile}"),
        code_expires_at: (!is_open).then_some(NOW + 60_000),
        is_open,
        created_at: NOW - 600_000,
        created_by: format!("operator:ada{hostile}"),
        seen_at: is_open.then_some(NOW - 4_000),
        revoked_at,
    };
    let all = [screen(1, true, None), screen(2, false, None), screen(3, false, Some(NOW))];
    let mut page = ScreensPage::new(shell(eye, hostile), eye, &all, "http://127.0.0.1:8080/wall".to_owned());
    page.code = Some((format!("hall-2{hostile}"), "ABCDEFGH23".to_owned()));
    page.problem = eye.lang.t("screens.name_taken").to_owned();
    page
}
