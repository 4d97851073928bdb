//! The stable codes of diagnostics; `afl explain CODE` prints the long form of each.

use crate::diagnostic::Severity;

macro_rules! codes {
    ($($name:ident = $code:literal $severity:ident $title:literal;)*) => {
        /// A kind of mistake. The number never changes its meaning once released.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code { $($name,)* }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// `AFL0001`
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// The title of this kind of mistake, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// The long form: an explanation, a wrong and a right example.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$name => include_str!(concat!("../explain/", $code, ".md")),)* }
            }
        }
    };
}

codes! {
    UnexpectedCharacter = "AFL0001" Error "a character that AFL does not use";
    UnterminatedString = "AFL0002" Error "a string without its closing quote";
    UnterminatedComment = "AFL0003" Error "a block comment that never ends";
    BadEscape = "AFL0004" Error "a broken escape in a string";
    UnknownEscape = "AFL0005" Warning "an escape that means nothing";
    NumberOutOfRange = "AFL0006" Error "an integer beyond 64 bits";
    MalformedNumber = "AFL0007" Error "a number with letters in it";
    SourceTooLarge = "AFL0008" Error "a source text over the limit";
    UnterminatedScript = "AFL0009" Error "a script body that never ends";

    Expected = "AFL0100" Error "something else was expected here";
    Unclosed = "AFL0101" Error "a bracket that is never closed";
    NotADeclaration = "AFL0102" Error "text that is no declaration";
    NotAStatement = "AFL0103" Error "text that is no statement";
    ComparisonChain = "AFL0104" Error "a chain of comparisons";
    TooDeep = "AFL0105" Error "nesting over the limit";
    AssignmentInExpression = "AFL0106" Error "`=` where `==` is meant";
    PositionalArgument = "AFL0107" Error "an argument without its name";
    MixinWithoutParentheses = "AFL0108" Error "a mixin without parentheses";
    StepAfterYield = "AFL0109" Error "a step behind a yield";
    ReservedWord = "AFL0110" Error "a word kept for later";
    EventWithoutFacet = "AFL0111" Error "`event` without `facet`";
    WhenWithoutDefault = "AFL0112" Error "a `when` without `case _`";
    DefaultCaseNotLast = "AFL0113" Error "a case behind `case _`";
    MissingComma = "AFL0114" Error "a missing comma";
    TooManyDiagnostics = "AFL0115" Error "more mistakes than are shown";
    TooManyStatements = "AFL0116" Error "a block over the limit";

    UnknownFacet = "AFL0200" Error "a facet that is not declared";
    AmbiguousName = "AFL0201" Error "a name with two meanings";
    UnknownType = "AFL0202" Error "a type that is not declared";
    UnknownNamespace = "AFL0203" Error "a namespace that is not declared";
    DuplicateDeclaration = "AFL0204" Error "a name declared twice";
    DuplicateParameter = "AFL0205" Error "a parameter declared twice";
    DuplicateStep = "AFL0206" Error "a step named twice";
    ReservedName = "AFL0207" Error "a name that belongs to the runtime";
    NotCallable = "AFL0208" Error "a call of something that is no facet";
    NotAType = "AFL0209" Error "a facet where a type is meant";
    UnusedImport = "AFL0210" Warning "an import that nothing uses";

    UnknownArgument = "AFL0300" Error "an argument the facet does not take";
    MissingArgument = "AFL0301" Error "an argument the facet needs";
    DuplicateArgument = "AFL0302" Error "an argument given twice";
    WrongType = "AFL0303" Error "a value of the wrong type";
    BadOperand = "AFL0304" Error "an operator on the wrong kind of value";
    NotBoolean = "AFL0305" Error "a condition that is not true or false";
    NotIterable = "AFL0306" Error "a foreach over something that has no elements";
    NotConstant = "AFL0307" Error "a reference where only constants can stand";
    UnsetOutput = "AFL0308" Warning "a result slot without a value";
    DuplicateKey = "AFL0309" Error "a map key given twice";

    UnknownStep = "AFL0400" Error "a step that does not exist here";
    UnknownAttribute = "AFL0401" Error "an attribute the step does not have";
    UnknownInput = "AFL0402" Error "an input the owner does not have";
    MissingDollar = "AFL0403" Error "an input written without `$.`";
    StepOutOfReach = "AFL0404" Error "a step of another block";
    ReferenceCycle = "AFL0405" Error "steps that wait for one another";
    Recursion = "AFL0406" Error "a facet that calls itself without end";
    VariableClash = "AFL0407" Warning "a foreach variable that hides another name";

    YieldTarget = "AFL0500" Error "a yield to the wrong target";
    DuplicateYield = "AFL0501" Error "two yields to one target in a block";
    UnknownYieldAttribute = "AFL0502" Error "a yield of something the target does not return";
    YieldOverridden = "AFL0503" Warning "an attribute that two blocks yield";
    NeverYielded = "AFL0504" Warning "a return that nothing yields";
    KeepsLastElement = "AFL0505" Warning "a foreach result that keeps one element";
    NoBody = "AFL0506" Warning "a facet with returns and no body";

    MixinTarget = "AFL0600" Error "a mixin of something that cannot be mixed in";
    SchemaWithMixin = "AFL0601" Error "a schema with a mixin or block";
    DuplicateAlias = "AFL0602" Error "an alias that is taken";
    DuplicateImplicit = "AFL0603" Error "two implicits for one facet";
    PolicyMisuse = "AFL0604" Error "a policy or timer with impossible settings";
    PolicyWithoutEffect = "AFL0605" Warning "a policy that changes nothing";

    PromptWithoutTemplate = "AFL0700" Error "a prompt without a template";
    UnknownPlaceholder = "AFL0701" Error "a placeholder that is no parameter";
    DuplicatePromptEntry = "AFL0702" Error "a prompt entry given twice";
    EmptyScript = "AFL0703" Error "a script without a line of code";
    UnknownDocParameter = "AFL0704" Warning "documentation of something that is not there";
}

impl Code {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.text().eq_ignore_ascii_case(text))
    }
}
