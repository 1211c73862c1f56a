"""Staff pages of people, accounts and configuration, inside the namespace ``admin``."""

from __future__ import annotations

from accounts.admin import access, accounts, creating, finding, fqdns, offboarding, people

_TENANT = "tenants/<uuid:tenant>/"
_ACCOUNT = "accounts/<uuid:account>/"
_DOMAIN = f"{_ACCOUNT}domains/<str:domain>/"
_PERSON = "people/<int:person>/"

urlpatterns = [
    access.OpenPage.at(f"{_TENANT}open/", "tenant-open"),
    people.PeoplePage.at(f"{_TENANT}people/", "tenant-people"),
    people.TenantRevokePage.at(f"{_TENANT}people/revoke/", "tenant-revoke"),
    people.MemberPage.at(f"{_TENANT}people/member/", "tenant-member"),
    access.AccessPage.at(f"{_TENANT}people/access/", "tenant-access"),
    access.EndAccessPage.at(f"{_TENANT}people/access/end/", "tenant-access-end"),
    access.AskAccessPage.at(f"{_TENANT}people/access/ask/", "tenant-access-ask"),
    access.WithdrawAccessPage.at(f"{_TENANT}people/access/withdraw/", "tenant-access-withdraw"),
    access.ApproveAccessPage.at(
        f"{_TENANT}people/access/requests/<uuid:access_request>/approve/", "tenant-access-approve"
    ),
    creating.RestoreTenantPage.at(f"{_TENANT}restore/", "tenant-undelete"),
    creating.EnginePage.at(f"{_TENANT}engine/", "tenant-engine"),
    creating.NewAccountPage.at("accounts/new/", "account-new"),
    creating.NewTenantPage.at("tenants/new/", "tenant-new"),
    accounts.AccountPage.at(_ACCOUNT, "account"),
    accounts.ChangeAccountPage.at(f"{_ACCOUNT}change/", "account-change"),
    accounts.CheckDomainPage.at(f"{_DOMAIN}check/", "domain-check"),
    accounts.VerifyDomainPage.at(f"{_DOMAIN}verify/", "domain-verify"),
    fqdns.FqdnPage.at("fqdns/", "fqdns"),
    finding.SuggestionsPage.at("suggestions/<slug:kind>/", "suggestions"),
    people.ReviewPage.at("people/", "people"),
    people.ReviewRevokePage.at("people/revoke/", "people-revoke"),
    people.PersonOfPage.at("people/of/", "person-of"),
    people.PersonPage.at(_PERSON, "person"),
    people.PersonRevokePage.at(f"{_PERSON}revoke/", "person-revoke"),
    offboarding.OffboardPage.at(f"{_PERSON}offboard/", "person-offboard"),
]
