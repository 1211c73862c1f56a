"""The ways into the admin site: identity providers, mailed links, passkeys and, last, the password.

Each proves an identity. `sign_in` then asks for the second factor and opens the session, by the login
stages of django-allauth. A wrong password makes the next try wait longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from allauth.account.adapter import get_adapter
from allauth.account.decorators import reauthentication_required
from allauth.account.internal.flows.login import record_authentication
from allauth.account.internal.flows.reauthentication import is_reauthentication_required
from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import get_user
from django.contrib.auth.views import LoginView, redirect_to_login
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access.credentials import lock_sign_in
from accounts.events import known_address, record_failed_sign_in, sign_in_failures_recorded
from accounts.limits import claim_try, count_use, forget_tries
from accounts.models import User
from accounts.signin.flow import (
    Identity,
    SignIn,
    check_identity,
    find_identity,
    find_user,
    link_identity,
    open_session,
)
from accounts.signin.links import find_link, look_at_link, request_link, use_link
from accounts.signin.providers import authorization_url, prove_identity
from accounts.signin.redirects import with_parameters
from accounts.signin.staff.adapters import NOT_STAFF, why_not_staff
from accounts.signin.staff.enrolment import remember_link
from accounts.signin.staff.sessions import assurance_of, ways_used
from accounts.signin.state import Purpose, bind_browser, new_browser_id
from tenantadmin.lib.core.emails import check_email, normalize_email
from tenantadmin.lib.core.errors import ApiError, Forbidden, RateLimited
from tenantadmin.lib.core.request_context import current_address, current_network

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.signin.flow import Device
    from accounts.signin.state import PendingSignIn


_KIND: Final = "password"


class PasswordForm(AdminAuthenticationForm):
    """Counts every try before it checks the password, so that concurrent tries are counted too.

    Tries are counted for the email and the client's network together: strangers cannot keep the owner of a
    known email out. ``refusal`` is the error if a limit refused the try, else None.
    """

    error_messages = {  # noqa: RUF012  # as Django declares it
        **AdminAuthenticationForm.error_messages,
        "invalid_login": "The email or the password is wrong, or the user may not open this site.",
    }
    request: HttpRequest
    refusal: ApiError | None = None

    def clean(self) -> dict[str, Any]:
        network = current_network()
        email = normalize_email(self.cleaned_data.get("username") or "")
        key = f"{network} {email}"
        try:
            count_use(limit=settings.PASSWORD_ADDRESS_LIMIT, kind="password-address", key=network)
            claim_try(kind=_KIND, key=key)
        except ApiError as error:
            self.refusal = error
            self._record_failure(email, error.why)
            raise ValidationError(_explain(error), code=error.code) from error
        try:
            cleaned: dict[str, Any] = super().clean()
        except ValidationError:
            self._record_failure(email)
            raise
        if self.get_user() is not None:
            forget_tries(kind=_KIND, key=key)
        return cleaned

    def _record_failure(self, email: str, reason: str = "") -> None:
        # People type passwords into this field too: only an address is recorded.
        subject = known_address(email)
        if not reason:
            user = User.objects.filter(email=subject).first()
            reason = why_not_staff(user) if subject else "What was typed is no email address."
        record_failed_sign_in(
            subject, way={"provider": "password"}, reason=reason or "The password is wrong."
        )


def _explain(error: ApiError) -> str:
    if not isinstance(error, RateLimited):
        return "Sign-in with a password is not possible at the moment. Try again later."
    return f"Too many tries. Try again in {error.headers['Retry-After']} seconds, or sign in another way."


class StaffLoginView(LoginView):
    """The page with all ways in. Its own form takes the password, which is the last of them."""

    template_name = "admin/login.html"
    authentication_form = PasswordForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        target = self.get_redirect_url()
        return {
            **super().get_context_data(**kwargs),
            "next": target,
            "app_path": self.request.get_full_path(),
            "providers": settings.SIGNIN_PROVIDERS,
            "links_enabled": settings.MAGIC_LINKS_ENABLED,
        }

    def form_valid(self, form: Any) -> HttpResponse:
        return sign_in(self.request, form.get_user(), method="password", target=self.get_redirect_url())

    def form_invalid(self, form: Any) -> HttpResponse:
        answer = super().form_invalid(form)
        if form.refusal is not None:
            answer.status_code = form.refusal.status
            for name, value in form.refusal.headers.items():
                answer[name] = value
        return answer


def sign_in(
    request: HttpRequest, user: User, *, method: str, provider: str | None = None, target: str = ""
) -> HttpResponse:
    """Ask for the second factor, or open the session and go to ``target``, a checked address."""
    record_authentication(request, user, method, provider=provider)
    answer: HttpResponse = perform_login(request, user, redirect_url=target or None)
    return answer


def confirm_sign_in(request: HttpRequest, *, target: str) -> HttpResponse:
    """Go to the page that asks a signed-in user for the second factor again, and then to ``target``."""
    page = get_adapter().get_reauthentication_methods(request.user)[0]["url"]
    query = QueryDict(mutable=True)
    query["next"] = target
    return redirect(f"{page}?{query.urlencode(safe='/')}")


def step_up(request: HttpRequest, *, device: Device) -> SignIn | HttpResponse:
    """Return tokens of a session that is proven as this one of the admin site is, or the next page to pass.

    The pages lead back here, until the second factor was proven a short time ago.
    """
    # The view is of the API, which has put the bearer's user here.
    request.user = user = get_user(request)
    if not isinstance(user, User) or not user.is_staff or not assurance_of(request).opens_admin:
        return redirect_to_login(request.get_full_path(), login_url=reverse("admin:login"))
    if is_reauthentication_required(request, app="allauth.mfa"):
        return confirm_sign_in(request, target=request.get_full_path())
    ways = ways_used(request, user)
    session = open_session(user, device, assurance=assurance_of(request), ways=ways, is_step_up=True)
    return SignIn.of_session(*session)


@never_cache
@require_GET
def start_at_provider(request: HttpRequest, provider: str) -> HttpResponse:
    """Go to the identity provider's page."""
    return _go_to_provider(request, provider, purpose=Purpose.STAFF, target=_checked_target(request))


@never_cache
@require_POST
@reauthentication_required(app="allauth.mfa")  # type: ignore[untyped-decorator]
def start_linking(request: HttpRequest, provider: str) -> HttpResponse:
    """Go to the identity provider's page, to link the identity that it proves to the signed-in user."""
    return _go_to_provider(request, provider, purpose=Purpose.LINK, user_id=request.user.pk)


def finish_at_provider(request: HttpRequest, pending: PendingSignIn, *, refused: bool) -> HttpResponse:
    """Sign in, or link the identity: what ``pending`` was begun for."""
    # The callback is a view of the API, which has put the bearer's user here.
    request.user = get_user(request)
    try:
        identity = prove_identity(request, pending, refused=refused)
        if pending.purpose == Purpose.LINK:
            return _link(request, identity, user_id=pending.user_id)
        with sign_in_failures_recorded(known_address(identity.email), way=pending.provider):
            return _sign_in_by(request, identity, target=pending.redirect)
    except ApiError as error:
        messages.error(request, error.text)
        return redirect("admin:login")


@never_cache
@require_POST
def ask_for_link(request: HttpRequest) -> HttpResponse:
    """Mail a sign-in link. Known and unknown addresses get the same answer."""
    target = _checked_target(request)
    page = _leading_to(target, reverse("staff-link"))
    try:
        email = check_email(request.POST.get("email", ""))
        request_link(email=email, redirect="", address=current_address(), page=page)
    except ValueError as error:
        messages.error(request, str(error))
    except ApiError as error:
        messages.error(request, error.text)
    else:
        messages.success(request, f"A link is on its way to {email}. It works once, for 15 minutes.")
    return redirect(_leading_to(target, reverse("admin:login")))


@never_cache
@require_http_methods(["GET", "POST"])
def use_mailed_link(request: HttpRequest) -> HttpResponse:
    """Show a button, which mail scanners that follow links do not press. Sign in when it is pressed."""
    token = request.POST.get("token") or request.GET.get("t", "")
    target = _checked_target(request)
    if request.method == "GET":
        link = look_at_link(token)
        shown = {"token": token, "next": target, "title": "Sign in", "email": link.email if link else ""}
        answer = render(request, "admin/link.html", shown)
        answer["Referrer-Policy"] = "same-origin"
        return answer
    try:
        link = find_link(token)
        with sign_in_failures_recorded(link.email, way="link"), transaction.atomic():
            use_link(link)
            return _sign_in_by(request, Identity(email=link.email, email_verified=True), target=target)
    except ApiError as error:
        messages.error(request, error.text)
        return redirect(_leading_to(target, reverse("admin:login")))


@never_cache
@require_GET
def open_enrolment(request: HttpRequest) -> HttpResponse:
    """Take the link that lets a user add its first second factor. The user signs in first."""
    remember_link(request, request.GET.get("t", ""))
    return redirect("admin:login")


@never_cache
@require_GET
def show_ways_in(request: HttpRequest) -> HttpResponse:
    """Show the user's own ways in: linked identity, second factors, password."""
    if not request.user.is_authenticated:
        return redirect("admin:login")
    context = {
        "title": "Ways to sign in",
        "others": [name for name in settings.SIGNIN_PROVIDERS if name != request.user.identity_provider],
    }
    return render(request, "admin/ways_in.html", context)


def _go_to_provider(
    request: HttpRequest, provider: str, *, purpose: Purpose, target: str = "", user_id: int | None = None
) -> HttpResponse:
    if provider not in settings.SIGNIN_PROVIDERS:
        messages.error(request, f"There is no identity provider {provider!r}.")
        return redirect("admin:login")
    browser = new_browser_id()
    try:
        page = authorization_url(
            request, provider=provider, redirect=target, browser=browser, purpose=purpose, user_id=user_id
        )
    except ApiError as error:
        messages.error(request, error.text)
        return redirect("admin:login")
    answer = redirect(page)
    bind_browser(answer, browser)
    return answer


def _sign_in_by(request: HttpRequest, identity: Identity, *, target: str = "") -> HttpResponse:
    """Sign in the platform admin whom ``identity`` proves. No user is created.

    Raises:
        SignInFailed: the address is not verified or not valid, or its user has another identity.
        Forbidden: there is no such platform admin, or its domain may not sign in.
    """
    email = check_identity(identity)
    with transaction.atomic():
        lock_sign_in(email)
        user = find_user(identity, email)
        if user is None or not user.is_staff:
            raise Forbidden(NOT_STAFF, why=why_not_staff(user))
        link_identity(user, identity)
    method = "socialaccount" if identity.provider else "link"
    return sign_in(request, user, method=method, provider=identity.provider or None, target=target)


def _link(request: HttpRequest, identity: Identity, *, user_id: int | None) -> HttpResponse:
    if not request.user.is_authenticated or request.user.pk != user_id:
        raise Forbidden("Sign in again, then link the identity provider.")
    email = check_identity(identity)
    with transaction.atomic():
        lock_sign_in(email)
        owner = find_identity(identity)
        if owner is not None and owner.pk != user_id:
            raise Forbidden(f"This identity belongs to {owner.email}.")
        link_identity(request.user, identity)
    messages.success(request, f"You sign in through {identity.provider!r} now.")
    return redirect("staff-ways-in")


def _checked_target(request: HttpRequest) -> str:
    """Return the address in ``next`` if it is of this site."""
    target = request.POST.get("next") or request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_ours else ""


def _leading_to(target: str, page: str) -> str:
    return with_parameters(page, {"next": target}) if target else page
