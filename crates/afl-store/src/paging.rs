//! Reading in pages.

/// The cursor of a loop that reads page after page.
///
/// ```
/// # use afl_store::paging::Pages;
/// # let read = |after: Option<&u32>| -> Vec<u32> { (after.map_or(1, |it| it + 1)..=5).take(2).collect() };
/// let mut seen = Vec::new();
/// let mut pages = Pages::first();
/// while !pages.is_over() {
///     let page = read(pages.after());
///     pages.follow(page.last().copied());
///     seen.extend(page);
/// }
/// assert_eq!(seen, [1, 2, 3, 4, 5]);
/// ```
#[derive(Debug)]
pub struct Pages<C> {
    after: Option<C>,
    is_over: bool,
}

impl<C> Pages<C> {
    pub fn first() -> Self {
        Self::behind(None)
    }

    /// Begins behind a cursor that an earlier loop left.
    pub fn behind(after: Option<C>) -> Self {
        Self { after, is_over: false }
    }

    /// Whether the last page was read.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The cursor behind which the next page begins; none for the first page.
    pub fn after(&self) -> Option<&C> {
        self.after.as_ref()
    }

    /// Goes to the page behind this cursor; none means that the page just read was the last.
    pub fn follow(&mut self, next: Option<C>) {
        self.is_over = next.is_none();
        self.after = next;
    }
}

/// The last item of a full page: a page with fewer items than the limit is the last one.
pub fn last_if_full<T>(page: &[T], limit: usize) -> Option<&T> {
    page.last().filter(|_| page.len() == limit)
}
