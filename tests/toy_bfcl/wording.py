"""What the user says when functions arrive."""

DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC = "There are more functions now."
