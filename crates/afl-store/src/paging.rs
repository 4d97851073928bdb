//! Reading in pages.

/// The cursor of a loop that reads page after page.
///
/// ```
/// # use afl_store::paging::Pages;
/// # let read = |after: Option<u32>| (1..=5).skip_while(|n| after.is_some_and(|it| *n <= it)).take(2).collect::<Vec<u32>>();
/// let mut seen = Vec::new();
/// let mut pages = Pages::new();
/// while let Some(after) = pages.next() {
///     let page = read(after);
///     pages.follow(page.last().copied());
///     seen.extend(page);
/// }
/// assert_eq!(seen, [1, 2, 3, 4, 5]);
/// ```
#[derive(Debug)]
pub struct Pages<C>(Option<Option<C>>);

impl<C> Pages<C> {
    #[expect(clippy::new_without_default, reason = "there is no default page")]
    pub fn new() -> Self {
        Self(Some(None))
    }

    /// The cursor behind which the next page begins; nothing after the last page.
    #[expect(clippy::should_implement_trait, reason = "each page decides whether another follows")]
    pub fn next(&mut self) -> Option<Option<C>> {
        self.0.take()
    }

    /// Another page follows behind this cursor, if there is one.
    pub fn follow(&mut self, next: Option<C>) {
        self.0 = next.map(Some);
    }
}

/// The last item of a full page: a page with fewer items than the limit is the last one.
pub fn last_if_full<T>(page: &[T], limit: usize) -> Option<&T> {
    page.last().filter(|_| page.len() == limit)
}
